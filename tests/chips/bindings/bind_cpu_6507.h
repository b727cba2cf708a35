// The 6507 on 64 KiB of flat memory, which logs every access except the fetch of the instruction.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "core_by_name.h"
#include "predecoded_fields.h"

namespace py = pybind11;
using namespace cule;

namespace {

template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

constexpr int kMaxAccesses = 16;
struct Access {
  int32_t kind, address, value, after_write;  // kind 1: read, 2: write
};

struct FlatMachine {
  static constexpr Tier kLastTier = Tier::kRarest;
  Registers r{};
  int32_t cycle = 0;
  uint32_t bus = 0;
  bool moved = false;
  uint8_t* memory = nullptr;
  std::vector<Access> log;
  std::vector<std::pair<uint32_t, uint8_t>> undo;

  void poke(uint32_t address, uint32_t value) {
    undo.push_back({address, memory[address]});
    memory[address] = static_cast<uint8_t>(value);
  }
  void restore() {
    for (; !undo.empty(); undo.pop_back()) memory[undo.back().first] = undo.back().second;
  }

  uint32_t read(uint32_t address) {
    bus = memory[address & 0xFFFF];
    log.push_back({1, static_cast<int32_t>(address), static_cast<int32_t>(bus), 0});
    return bus;
  }
  uint32_t read_if(bool wanted, uint32_t address, uint32_t otherwise) {
    return wanted ? read(address) : otherwise;
  }
  uint32_t read_pointer_if(bool wanted, uint32_t address) {
    if (!wanted) return 0;
    const uint32_t low = read(address);
    return low | read(address + 1) << 8;
  }
  void write_if(bool wanted, uint32_t address, uint32_t value) {
    if (wanted) write(address, value, false);
  }
  void write(uint32_t address, uint32_t value, bool after_write) {
    log.push_back({2, static_cast<int32_t>(address), static_cast<int32_t>(value), after_write});
    poke(address & 0xFFFF, value);
    bus = value;
  }
  bool is_special(uint32_t) const { return false; }

  Predecoded look_ahead() const {
    return with_operand(operation_of(memory[r.pc]), memory[(r.pc + 1) & 0xFFFF],
                        memory[(r.pc + 2) & 0xFFFF]);
  }
  Predecoded fetch_slowly() const { throw std::logic_error("flat memory is never fetched slowly"); }
};

struct NoBus {
  Registers r;
};
static_assert(is_bus(static_cast<FlatMachine*>(nullptr)));
static_assert(!is_bus(static_cast<NoBus*>(nullptr)));
static_assert(!is_partial_bus(static_cast<FlatMachine*>(nullptr)));

// Runs `steps` instructions from each row (pc, a, x, y, s, p) of `registers`, with that row of
// `code` at pc in `memory`, which is put back afterwards. Returns (pc, a, x, y, s, p, cycles,
// jammed) and the accesses (kind, address, value, after_write).
py::tuple run_cpu(const std::string& core_name, Array<uint8_t> memory, Array<uint32_t> registers,
                  Array<uint8_t> code, int steps) {
  const py::ssize_t n = registers.shape(0), bytes = code.shape(1);
  if (memory.size() != 65536 || registers.shape(1) != 6 || code.shape(0) != n)
    throw std::invalid_argument("shapes");
  py::array_t<uint32_t> after(std::vector<py::ssize_t>{n, 8});
  py::array_t<int32_t> accesses(std::vector<py::ssize_t>{n, kMaxAccesses, 4});
  std::vector<uint8_t> copy(memory.data(), memory.data() + 65536);
  int64_t executed = 0;
  const CoreByName core(core_name, &executed);
  FlatMachine machine;
  machine.memory = copy.data();
  for (py::ssize_t i = 0; i < n; ++i) {
    const uint32_t* in = registers.data(i, 0);
    machine.r = Registers{};
    machine.r.pc = in[0];
    machine.r.a = in[1];
    machine.r.x = in[2];
    machine.r.y = in[3];
    machine.r.s = in[4];
    unpack_status(machine.r, in[5]);
    machine.cycle = 0;
    machine.log.clear();
    for (py::ssize_t b = 0; b < bytes; ++b)
      machine.poke((in[0] + static_cast<uint32_t>(b)) & 0xFFFF, *code.data(i, b));
    Predecoded op = machine.look_ahead();
    for (int step = 0; step < steps; ++step) op = core(machine, op);
    machine.restore();
    const Registers& r = machine.r;
    const uint32_t out[8] = {
        r.pc, r.a, r.x, r.y, r.s, pack_status(r), static_cast<uint32_t>(machine.cycle), r.jammed};
    for (int k = 0; k < 8; ++k) *after.mutable_data(i, k) = out[k];
    if (machine.log.size() > kMaxAccesses) throw std::length_error("more accesses than expected");
    machine.log.resize(kMaxAccesses, Access{});
    for (int k = 0; k < kMaxAccesses; ++k) {
      const Access& a = machine.log[static_cast<size_t>(k)];
      const int32_t fields[4] = {a.kind, a.address, a.value, a.after_write};
      for (int f = 0; f < 4; ++f) *accesses.mutable_data(i, k, f) = fields[f];
    }
  }
  return py::make_tuple(after, accesses);
}

}  // namespace

void bind_cpu_6507(py::module_& m) {
  m.def("run_cpu", &run_cpu);
  m.def("predecode", [](uint32_t opcode, uint32_t low, uint32_t high) {
    return fields_of(with_operand(operation_of(opcode & 0xFF), low & 0xFF, high & 0xFF));
  });
  m.def("reset_registers", [] {
    Registers r{1, 2, 3, 4, 5, 6, 7, 1, 1, 1, 1, 1};
    reset_registers(r);
    return std::array<uint32_t, 6>{r.a, r.x, r.y, r.s, pack_status(r), r.jammed};
  });
}
