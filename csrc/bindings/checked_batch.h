// A batch for Python, which sets its fields. It is checked before it is used.
#pragma once

#include <pybind11/pybind11.h>

#include <limits>
#include <map>
#include <stdexcept>
#include <string>

#include "bindings/arguments.h"
#include "bindings/check_batch.h"
#include "console/check_record.h"

namespace cule {

// A batch, and what of it has been checked since its last change, for the host or for a GPU.
struct CheckedBatch : Batch {
  enum class Checked { kNothing, kConsoles, kEnvs };
  Checked checked = Checked::kNothing;
  bool checked_on_host = false;
  bool started = false;  // whether its envs have been reset, so that they can be stepped
  std::map<std::string, uint64_t> bytes;  // the sizes of the memory that the fields point to

  // Sets a field. If that changes it, the batch is checked again before it is used.
  template <class T>
  void set(T& field, T value) {
    if (field == value) return;
    field = value;
    checked = Checked::kNothing;
  }
  // Sets an option whose range has been checked. On the host no array's size depends on it.
  void set_option(int32_t& field, int64_t value) {
    if (checked_on_host) field = static_cast<int32_t>(value);
    else set(field, static_cast<int32_t>(value));
  }
  // Sets a field to the address of memory. `memory` is (address, bytes), or 0 for none.
  template <class T>
  void place(const char* name, T*& field, const pybind11::object& memory) {
    pybind11::object at = memory;
    uint64_t size = 0;
    if (pybind11::isinstance<pybind11::tuple>(memory) && pybind11::len(memory) == 2) {
      const auto pair = memory.cast<pybind11::tuple>();
      at = pair[0];
      size = static_cast<uint64_t>(
          integer("the bytes of memory", pair[1], 0, std::numeric_limits<int64_t>::max()));
    } else if (!PyLong_Check(memory.ptr()) || !memory.equal(pybind11::int_(0))) {
      throw pybind11::type_error(std::string("expected ") + name +
                                 " to be an address and how many bytes are there, or 0, got " +
                                 text_of(memory));
    }
    set(field, reinterpret_cast<T*>(address(name, at, alignof(T))));
    set(bytes[name], size);
  }

  void check_envs(bool on_host) {
    if (checked == Checked::kEnvs) return;
    BatchCheck(*this, bytes, {true, !on_host}).all();
    checked = Checked::kEnvs;
    checked_on_host = on_host;
  }
  void check_consoles() {
    if (checked != Checked::kNothing) return;
    BatchCheck(*this, bytes, {false, false}).all();
    checked = Checked::kConsoles;
    checked_on_host = false;  // the options of a step are not checked yet
  }
  void check_powered_on() {
    check_consoles();
    EnvRecord record;
    load_part(records, 0, 0, record);
    if (const char* part = find_misfit(record, cartridge_bytes, configs[group[0]])) {
      throw std::invalid_argument(
          std::string(
              "expected a console that has been powered on, got one with an impossible value in ") +
          part);
    }
  }
};

}  // namespace cule
