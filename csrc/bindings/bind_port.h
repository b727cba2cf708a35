// Ports for Python, which opens and closes them.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/port.h"

namespace cule {

// Arrays are named as the batch has them.
inline void bind_port(pybind11::module_& m) {
  namespace py = pybind11;
  using Names = std::vector<std::string>;
  const auto make = [](CheckedBackend& backend, CheckedBatch& batch, Guard& guard, Names in,
                       Names reset_out, Names step_out, bool elsewhere, int32_t device,
                       int32_t actions, const py::object& first_seeds) {
    const uintptr_t seeds = address("first_seeds", first_seeds, alignof(int64_t));
    return std::make_unique<OwnedPort>(
        backend, batch, guard,
        PortUse{std::move(in), std::move(reset_out), std::move(step_out), elsewhere, device,
                actions, seeds});
  };
  py::class_<OwnedPort>(m, "Port")
      .def(py::init(make), py::keep_alive<1, 2>(), py::keep_alive<1, 3>(), py::keep_alive<1, 4>(),
           py::arg("backend"), py::arg("batch"), py::arg("guard"), py::arg("inputs"),
           py::arg("reset_outputs"), py::arg("step_outputs"), py::arg("elsewhere"),
           py::arg("device"), py::arg("num_actions"), py::arg("first_seeds") = 0)
      .def_property_readonly("number", &OwnedPort::number)
      .def("close", &OwnedPort::close);
  // The address of the function that plays a call (bindings/calls.h).
  m.attr("PLAY_CALL") = reinterpret_cast<uintptr_t>(&play_call);
}

}  // namespace cule
