// What each header of this folder adds to the module.
#pragma once

#include <pybind11/pybind11.h>

void bind_cpu_6507(pybind11::module_& m);
void bind_m6532(pybind11::module_& m);
void bind_tia(pybind11::module_& m);
void bind_random_tia(pybind11::module_& m);
void bind_console(pybind11::module_& m);
void bind_random_generators(pybind11::module_& m);
