// The M6532, alone.
#pragma once

#include "m6532/m6532.h"

#include "bindings.h"

namespace py = pybind11;
using namespace cule;

namespace {

struct Riot {
  M6532 riot;
  uint32_t swcha = 0xFF, swchb = 0x3F;
  explicit Riot(uint32_t timer) { m6532_reset(riot, timer); }
  uint32_t read(uint32_t address, int32_t cycle) {
    return m6532_read(riot, address, cycle, swcha, swchb);
  }
  void write(uint32_t address, uint32_t value, int32_t cycle) {
    m6532_write(riot, address, value, cycle);
  }
  void rebase(int32_t cycles) { m6532_rebase(riot, cycles); }
};

}  // namespace

void bind_m6532(py::module_& m) {
  py::class_<Riot>(m, "Riot")
      .def(py::init<uint32_t>())
      .def_readwrite("swcha", &Riot::swcha)
      .def_readwrite("swchb", &Riot::swchb)
      .def("read", &Riot::read)
      .def("write", &Riot::write)
      .def("rebase", &Riot::rebase);
}
