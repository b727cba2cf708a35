// Executes one 6507 instruction: effective address, read, compute, write back.
//
// All instructions take one path, which branches only for rare cases. It turns control bits into
// masks. Thus every lane of a warp runs the same lines, even if their instructions differ. `Decode`
// says where the control bits come from. `StaticDecode<opcode>` makes them compile-time constants.
// The path then folds to the few lines that the opcode needs; the CPU build switches over all 256
// opcodes. `DynamicDecode` carries the bits at run time. `Decode::may` and `may_also` return false
// if the compiler knows that the instruction has none of some bits. Code that needs those bits is
// inside `if constexpr`. This spares the compiler, which inlines thousands of instructions, the
// work of folding it away (design/translation_details.md).
//
// Source: ale-py. Unlike on a chip, timing is by instruction: all cycles of an instruction have
// passed when it accesses memory. There are no dummy reads or double writes, except for the stack
// and the return address, where ale-py has them.
//
// `Machine` is a bus (cpu_6507/bus.h).
#pragma once

#include "cpu_6507/bus.h"

namespace cule {

template <int kOpcode>
struct StaticDecode {
  static constexpr bool kKnown = true;
  static constexpr Predecoded op = kOpcode == kFetchSlowlyCode ? kFetchSlowly
                                                               : operation_of(kOpcode);
  static constexpr uint32_t control = op.control;
  static constexpr uint32_t more = op.more & 0xFFFF;
  static constexpr uint32_t opcode = kOpcode;
  static constexpr bool may(uint32_t bits) { return (control & bits) != 0; }
  // The same for bits of the second word.
  static constexpr bool may_also(uint32_t bits) { return (more & bits) != 0; }
};

struct DynamicDecode {
  static constexpr bool kKnown = false;
  uint32_t control, more, opcode;
  CULE_INLINE explicit DynamicDecode(Predecoded op)
      : control(op.control), more(op.more), opcode(opcode_of(op)) {}
  static constexpr bool may(uint32_t) { return true; }
  static constexpr bool may_also(uint32_t) { return true; }
};

// The address of the operand. Adds a cycle if indexing crosses a page.
template <class Decode, class Machine>
CULE_INLINE uint32_t effective_address(const Decode decode, Machine& m, uint32_t operand) {
  const uint32_t control = decode.control, mask = control & kZeroPage ? 0xFFu : 0xFFFFu;
  if constexpr (!Decode::may(kIndexX | kIndexY | kIndirect)) return operand & mask;
  const uint32_t x = control & kIndexX ? m.r.x : 0, y = control & kIndexY ? m.r.y : 0;
  const bool indirect = control & kIndirect;
  uint32_t base = operand;
  if constexpr (Decode::may(kIndirect)) {
    const uint32_t pointer = m.read_pointer_if(indirect, (operand + x) & 0xFF);
    base = indirect ? pointer : operand;
  }
  const uint32_t index = (indirect ? 0 : x) + y;
  const uint32_t address = base + index;
  if constexpr (Decode::may(kPagePenalty)) {
    if ((base ^ address) & (control & kPagePenalty ? 0xFF00u : 0u)) ++m.cycle;
  }
  return address & mask;
}

template <class Decode>
CULE_INLINE uint32_t source_register(const Decode decode, const Registers& r) {
  const uint32_t low = decode.control & 1u << kSourceShift ? r.x : r.a;
  const uint32_t high = decode.control & 1u << kSourceShift ? r.s : r.y;
  return decode.control & 2u << kSourceShift ? high : low;
}

// The extra cycle of a branch: 1 if two addresses are on different pages, else 0.
CULE_INLINE constexpr uint32_t crosses_page(uint32_t from, uint32_t to) {
  return ((from ^ to) & 0xFF00) != 0;
}

// Whether the instruction is a branch that is taken.
template <class Decode>
CULE_INLINE bool branches(const Decode decode, const Registers& r) {
  const bool second = decode.more & kSecondFlag;
  const bool high = (second ? r.v : r.n) & 0x80, low = (second ? r.z : r.c) != 0;
  const bool set = decode.more & kLateFlag ? low : high;
  if constexpr (Decode::kKnown) return Decode::may_also(kBranch) && set == Decode::may_also(kIfSet);
  return decode.more & (set ? kIfSet : kIfClear);
}

// Adds the cycles, and sets `pc` to the next instruction, or to the target of a branch or jump. A
// rare instruction may set `pc` again.
template <class Decode, class Machine>
CULE_INLINE void advance(const Decode decode, Machine& m, uint32_t operand) {
  Registers& r = m.r;
  const uint32_t control = decode.control;
  m.cycle += control & kCyclesMask;
  const uint32_t next = r.pc + (control >> kLengthShift & 3);
  uint32_t target = next;
  if constexpr (Decode::may_also(kBranch)) {
    const bool taken = branches(decode, r);
    target = next + (taken ? operand : 0);
    if (taken) ++m.cycle;
    m.cycle += crosses_page(next, target);
  }
  r.pc = (control & kJump ? operand : target) & 0xFFFF;
}

// The two addends that a register and an operand make (predecoded.h): p in bits 8 to 15, q in bits
// 0 to 7.
template <int kOpcode>
CULE_INLINE uint32_t addends(const StaticDecode<kOpcode>, uint32_t reg, uint32_t m) {
  constexpr uint32_t control = StaticDecode<kOpcode>::control;
  constexpr uint32_t register_in_p = control & kRegisterInP ? 0xFF : 0,
                     register_in_q = control & kRegisterInQ ? 0xFF : 0;
  constexpr uint32_t operand_in_p = control & kOperandInP ? 0xFF : 0, operand_in_q = 0xFF;
  constexpr uint32_t flip_register_in_p = control & kFlipRegisterInP ? 0xFF : 0,
                     flip_register_in_q = control & kFlipRegisterInQ ? 0xFF : 0;
  constexpr uint32_t flip_operand_in_p = control & kFlipOperandInP ? 0xFF : 0,
                     flip_operand_in_q = control & kFlipOperandInQ ? 0xFF : 0;
  const uint32_t p = ((reg & register_in_p) ^ flip_register_in_p) &
                     ((m & operand_in_p) ^ flip_operand_in_p);
  const uint32_t q = ((reg & register_in_q) ^ flip_register_in_q) &
                     ((m & operand_in_q) ^ flip_operand_in_q);
  return p << 8 | q;
}
CULE_INLINE uint32_t addends(const DynamicDecode decode, uint32_t reg, uint32_t m) {
  const uint32_t of_register = spread_signs(decode.control),
                 of_operand = spread_signs(decode.control << 1) | 0xFF;
  return ((reg * 0x0101 & of_register) ^ of_register >> 16) &
         ((m * 0x0101 & of_operand) ^ of_operand >> 16);
}

// Whether the instruction sets no flag, and its result is the operand or is unused. True for
// stores, jumps and branches.
template <class Decode>
constexpr bool only_copies() {
  return !Decode::may(kSetsNZ | kSetsC | kSetsV | kShiftRight | kCarryFlag | kCarryOne |
                      kRegisterInQ | kRegisterInP | kFlipRegisterInP | kOperandInP |
                      kFlipOperandInP | kFlipOperandInQ | kRare);
}

// The adder and the shifter. `m` is the operand. Returns the result and sets the flags.
template <class Decode>
CULE_INLINE uint32_t compute(const Decode decode, Registers& r, uint32_t reg, uint32_t m) {
  if constexpr (only_copies<Decode>()) return m;
  const uint32_t control = decode.control;
  const uint32_t both = addends(decode, reg, m), p = both >> 8, q = both & 0xFF;
  const uint32_t carry = control & kCarryFlag ? r.c : 0;
  const uint32_t sum = p + q + (control & kCarryOne ? 1u : carry);
  const bool right = control & kShiftRight, tests = control & kBitTest;
  const uint32_t result = right ? m >> 1 | carry << 7 : sum & 0xFF;
  if constexpr (Decode::may(kSetsC)) r.c = control & kSetsC ? (right ? m & 1 : sum >> 8) : r.c;
  if constexpr (Decode::may(kSetsV)) {
    const uint32_t overflow = tests ? m << 1 : ~(p ^ q) & (p ^ sum);
    r.v = control & kSetsV ? overflow & 0x80 : r.v;
  }
  if constexpr (Decode::may(kSetsNZ)) {
    r.n = control & kSetsNZ ? (tests ? m : result) : r.n;
    r.z = control & kSetsNZ ? result : r.z;
  }
  return result;
}

template <class Decode>
CULE_INLINE void write_back(const Decode decode, Registers& r, uint32_t value) {
  if constexpr (Decode::may_also(kToA)) r.a = decode.more & kToA ? value : r.a;
  if constexpr (Decode::may_also(kToX)) r.x = decode.more & kToX ? value : r.x;
  if constexpr (Decode::may_also(kToY)) r.y = decode.more & kToY ? value : r.y;
  if constexpr (Decode::may_also(kToS)) r.s = decode.more & kToS ? value : r.s;
}

// Executes the instruction at `pc`, whose operand is `operand`. Returns the next one.
template <class Decode, class Machine>
CULE_INLINE Predecoded execute(const Decode decode, Machine& m, uint32_t operand) {
  constexpr bool kFull = kIsFullBus<Machine>;
  static_assert(is_bus(static_cast<Machine*>(nullptr)), "expected a bus (cpu_6507/bus.h)");
  static_assert(kFull || is_partial_bus(static_cast<Machine*>(nullptr)),
                "expected a bus that says what it cannot do (cpu_6507/bus.h)");
  const uint32_t control = decode.control;
  // A slow fetch begins with the byte that the last instruction left on the bus.
  m.bus = kFull && decode.opcode == kFetchSlowlyCode ? m.bus : operand >> 8;
  m.moved = false;
  advance(decode, m, operand);
  Predecoded next = m.look_ahead();

  // On a partial bus, rare instructions skip the rest of the common path.
  if constexpr (!kFull && Decode::may(kRare)) {
    if ((control & kRare) && !m.cannot_do_rare(decode.opcode, operand)) {
      execute_rare(decode, m, operand, operand, 0);
      return m.moved ? m.look_ahead() : next;
    }
  }

  const uint32_t address = effective_address(decode, m, operand);
  if constexpr (!kFull && Decode::may(kReads | kWrites | kSetsV | kRare)) {
    if (m.cannot_do(control, address)) return m.fall_back();
  }
  const uint32_t reg = source_register(decode, m.r), carry = m.r.c;
  uint32_t read = control & kFromRegister ? reg : operand & 0xFF;
  if constexpr (Decode::may(kReads)) read = m.read_if(control & kReads, address, read);
  const uint32_t value = compute(decode, m.r, reg, read);
  write_back(decode, m.r, value);
  if constexpr (Decode::may(kWrites)) m.write_if(control & kWrites, address, value);
  if constexpr (kFull) {
    const bool decimal = (control & kSetsV) && !(control & kBitTest) && m.r.d;
    if ((control & kRare) || decimal) {
      if (decode.opcode == kFetchSlowlyCode) return m.fetch_slowly();
      if (control & kRare) {
        execute_rare(decode, m, operand, address, value);
      } else {
        m.r.a = reg;
        m.r.c = carry;
        if (control & kFlipOperandInQ) subtract(m.r, read);
        else add(m.r, read);
      }
    }
    if (m.moved) next = m.look_ahead();
  }
  return next;
}

}  // namespace cule
