// Either way of dispatching instructions, chosen at run time.
#pragma once

#include <stdexcept>
#include <string>

#include "execution/interpreter.h"

namespace cule {

// A bus with functions that are called: compiled into all opcodes they would take minutes.
template <class M>
struct CalledBus {
  M& m;
  Registers& r = m.r;
  decltype(M::cycle)& cycle = m.cycle;
  decltype(M::bus)& bus = m.bus;
  decltype(M::moved)& moved = m.moved;
  static constexpr Tier kLastTier = M::kLastTier;
  using Word = uint32_t;

  CULE_COLD Word read(Word address) { return m.read(address); }
  CULE_COLD Word read_if(bool wanted, Word address, Word otherwise) {
    return m.read_if(wanted, address, otherwise);
  }
  CULE_COLD Word read_pointer_if(bool wanted, Word address) {
    return m.read_pointer_if(wanted, address);
  }
  CULE_COLD void write(Word address, Word value, bool after_write) {
    m.write(address, value, after_write);
  }
  CULE_COLD void write_if(bool wanted, Word address, Word value) {
    m.write_if(wanted, address, value);
  }
  CULE_COLD bool is_special(Word address) { return m.is_special(address); }
  CULE_COLD Predecoded look_ahead() { return m.look_ahead(); }
  CULE_COLD Predecoded fetch_slowly() { return m.fetch_slowly(); }
};

// A switch over 256 instances of the path of execute.h. The compiler has simplified each for its
// opcode.
struct StaticCore : AnyGame {
  template <class M>
  CULE_INLINE Predecoded operator()(M& m, Predecoded op) const {
    const uint32_t operand = operand_of(op);
#define CULE_CASE(code) case code: return execute_opcode<code>(m, operand);
#define CULE_CASES_4(code) \
  CULE_CASE(code) CULE_CASE(code + 1) CULE_CASE(code + 2) CULE_CASE(code + 3)
#define CULE_CASES_16(code) \
  CULE_CASES_4(code) CULE_CASES_4(code + 4) CULE_CASES_4(code + 8) CULE_CASES_4(code + 12)
#define CULE_CASES_64(code) \
  CULE_CASES_16(code) CULE_CASES_16(code + 16) CULE_CASES_16(code + 32) CULE_CASES_16(code + 48)
    switch (static_cast<uint8_t>(opcode_of(op))) {
      CULE_CASES_64(0x00) CULE_CASES_64(0x40) CULE_CASES_64(0x80) CULE_CASES_64(0xC0)
    }
#undef CULE_CASE
#undef CULE_CASES_4
#undef CULE_CASES_16
#undef CULE_CASES_64
    __builtin_unreachable();
  }
  template <class M>
  CULE_INLINE void run(M& m) const { interpret(m, *this); }

 private:
  template <int kOpcode, class M>
  static __attribute__((noinline)) Predecoded execute_opcode(M& m, uint32_t operand) {
    CalledBus<M> bus{m};
    return execute(StaticDecode<kOpcode>{}, bus, operand);
  }
};

// By its name. Counts the predecoded instructions that it executes.
struct CoreByName : AnyGame {
  bool is_static;
  int64_t* executed;
  CoreByName(const std::string& name, int64_t* count)
      : is_static(name == "static"), executed(count) {
    if (!is_static && name != "dynamic") throw std::invalid_argument("core: static or dynamic");
  }
  template <class M>
  __attribute__((noinline)) Predecoded operator()(M& machine, Predecoded op) const {
    ++*executed;
    return is_static ? StaticCore{}(machine, op) : DynamicCore{}(machine, op);
  }
  template <class M>
  void run(M& machine) const {
    interpret(machine, *this);
  }
};

}  // namespace cule
