// One 6507 instruction: effective address, read, compute, write back.
//
// All micro-operations take one path, which branches only for what is rare. Control bits become
// masks, so that every lane of a warp runs the same lines, whatever its instruction. `Decode` says
// where the control bits come from. `StaticDecode<opcode>` makes them compile-time constants: the
// path folds to the few lines that the opcode needs (the CPU build switches over 256 of them).
// `DynamicDecode` carries them at run time. `Decode::may` and `may_also` say whether an instruction
// can have any of some bits, as far as that is known at compile time. What needs those bits is
// inside `if constexpr`, so that a compiler that inlines thousands of instructions does not have to
// fold it away (design/translation_details.md).
//
// Timing is by instruction, as in ale-py: when an instruction touches memory, all of its cycles
// have passed. There are no dummy reads or double writes, except for the stack and the return
// address, where ale-py has them.
//
// A `Machine` offers
//   r                      Registers
//   cycle                  the CPU cycle
//   bus                    the last byte on the data bus
//   moved                  whether the next instruction is not where it was looked for
//   read(address), read_if(wanted, address, otherwise), read_pointer_if(wanted, address)
//   write(address, value, after_write), write_if(wanted, address, value)
//   is_special(address)
//   look_ahead()           the micro-operation at `r.pc`, without side effects
//   fetch_slowly()         the same, fetched through the bus
//   kRareOps               which of the rare instructions it does; only kAll has decimal mode
// A machine with less than kAll also has
//   leaves_rare(opcode, operand), leaves(control, address)
//                          whether it cannot execute this instruction; if `leaves_rare` says so,
//                          `leaves` must say so too. Until then only `r.pc`, `cycle` and `bus` have
//                          changed.
//   leave()                what to do then: the next micro-operation
#pragma once

#include "cpu_6507/arithmetic.h"

namespace cule {

template <int kOpcode>
struct StaticDecode {
  static constexpr bool kKnown = true;
  static constexpr MicroOp op = kOpcode == kFetchSlowlyCode ? kFetchSlowly : operation_of(kOpcode);
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
  CULE_INLINE explicit DynamicDecode(MicroOp op)
      : control(op.control), more(op.more), opcode(opcode_of(op)) {}
  static constexpr bool may(uint32_t) { return true; }
  static constexpr bool may_also(uint32_t) { return true; }
};

// Calls `each(i)` for each i below `count`. The loop is unrolled only if the instruction is known.
template <class Decode, class Each>
CULE_INLINE void repeat(const Decode, uint32_t count, const Each& each) {
  if constexpr (Decode::kKnown) {
#pragma unroll
    for (uint32_t i = 0; i < 3; ++i) {
      if (i < count) each(i);
    }
  } else {
#pragma unroll 1
    for (uint32_t i = 0; i < count; ++i) each(i);
  }
}

// The address of the operand. Adds the cycle for crossing a page.
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

// 1 if two addresses are on different pages, else 0: the extra cycle.
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

// Adds the cycles, and sets `pc`: after the instruction, or to where it branches or jumps. A rare
// instruction may set `pc` again.
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

// The two addends (micro_op.h) of register and operand: p in bits 8 to 15, q in bits 0 to 7.
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

// Whether the instruction sets no flag, and its result is the operand or is not used: stores,
// jumps, branches.
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

// Which of the rare instructions a machine does: the common ones (a few percent of what programs
// execute), all that programs use, or all. What it leaves out costs no code.
enum class RareOps { kCommon, kUsed, kAll };

// Whether a rare opcode is one of the common ones, or one of the others that programs use. If
// `kOps` has no more than those, it always is.
template <RareOps kOps>
CULE_INLINE bool is_common_op(uint32_t opcode) {
  switch (opcode) {
    // JSR, RTS, PHA, PLA, PHP, JMP (indirect)
    case 0x20: case 0x60: case 0x48: case 0x68: case 0x08: case 0x6C: return true;
    default: return kOps == RareOps::kCommon;
  }
}
template <RareOps kOps>
CULE_INLINE bool is_used_op(uint32_t opcode) {
  switch (opcode) {
    // PLP, CLI, SEI, CLV, CLD, SED
    case 0x28: case 0x58: case 0x78: case 0xB8: case 0xD8: case 0xF8: return true;
    default: return kOps == RareOps::kUsed;
  }
}

// Whether a machine that does `kOps` does the rare instructions that `needed` adds.
constexpr bool does(RareOps kOps, RareOps needed) { return kOps >= needed; }

// How many bytes a rare instruction reads in a row: from the stack, the break vector or a jump's
// pointer.
template <RareOps kOps>
CULE_INLINE constexpr uint32_t bytes_to_gather(uint32_t opcode) {
  if (opcode == 0x60 || opcode == 0x68 || opcode == 0x6C) return 2;  // RTS, PLA, JMP (indirect)
  if (does(kOps, RareOps::kUsed) && opcode == 0x28) return 2;        // PLP
  if (does(kOps, RareOps::kAll)) return opcode == 0x40 ? 3 : opcode == 0x00 ? 2 : 0;  // RTI, BRK
  return 0;
}

// Where byte `i` of them is.
template <RareOps kOps>
CULE_INLINE uint32_t gathered_from(uint32_t opcode, const Registers& r, uint32_t operand,
                                   uint32_t i) {
  if (opcode == 0x6C) return (operand & 0xFF00) | ((operand + i) & 0xFF);  // both from one page
  if (does(kOps, RareOps::kAll) && opcode == 0x00) return 0xFFFE + i;
  const bool pulls = opcode == 0x68 || (does(kOps, RareOps::kUsed) && opcode == 0x28);
  // PLA and PLP read the byte below the wanted one, too.
  return 0x100 | ((r.s + !pulls + i) & 0xFF);
}

// How many bytes it pushes onto the stack; and whether it stores a byte instead.
template <RareOps kOps>
CULE_INLINE constexpr uint32_t bytes_to_push(uint32_t opcode) {
  if (opcode == 0x20) return 2;                    // JSR
  if (opcode == 0x48 || opcode == 0x08) return 1;  // PHA, PHP
  return does(kOps, RareOps::kAll) && opcode == 0x00 ? 3 : 0;
}
template <RareOps kOps>
CULE_INLINE constexpr bool stores_rarely(uint32_t opcode) {
  switch (does(kOps, RareOps::kAll) ? opcode : 0) {
    // SAX and the unstable stores
    case 0x83: case 0x87: case 0x8F: case 0x97:
    case 0x93: case 0x9B: case 0x9C: case 0x9E: case 0x9F: return true;
    default: return false;
  }
}

// The rare instructions, in three parts by how often programs use them. `gathered` is the bytes
// that were read. They return the bytes to write, the first in the low bits.
template <class Decode, class Machine>
CULE_INLINE uint32_t do_common_op(const Decode decode, Machine& m, uint32_t operand,
                                  uint32_t gathered) {
  Registers& r = m.r;
  switch (decode.opcode) {
    case 0x20: {  // JSR
      const uint32_t back = (r.pc - 1) & 0xFFFF;
      r.pc = operand;
      m.moved = true;
      return back >> 8 | (back & 0xFF) << 8;
    }
    case 0x60:  // RTS
      r.s = (r.s + 2) & 0xFF;
      r.pc = (gathered + 1) & 0xFFFF;
      m.moved = true;
      return 0;
    case 0x48: return r.a;             // PHA
    case 0x08: return pack_status(r);  // PHP
    case 0x6C:  // JMP (indirect)
      r.pc = gathered;
      m.moved = true;
      return 0;
    default:  // PLA
      r.s = (r.s + 1) & 0xFF;
      set_a(r, gathered >> 8 & 0xFF);
      return 0;
  }
}

template <class Decode, class Machine>
CULE_INLINE void do_used_op(const Decode decode, Machine& m, uint32_t gathered) {
  Registers& r = m.r;
  switch (decode.opcode) {
    case 0x28:  // PLP
      r.s = (r.s + 1) & 0xFF;
      unpack_status(r, gathered >> 8 & 0xFF);
      break;
    case 0x58: r.i = 0; break;  // CLI
    case 0x78: r.i = 1; break;  // SEI
    case 0xB8: r.v = 0; break;  // CLV
    case 0xD8: r.d = 0; break;  // CLD
    default: r.d = 1; break;    // SED
  }
}

// The instructions for interrupts, which the 6507 does not have, and the undocumented ones.
// `address` and `value` are the operand's address and the common path's result.
template <class Decode, class Machine>
CULE_INLINE uint32_t do_rarest(const Decode decode, Machine& m, uint32_t address, uint32_t value,
                               uint32_t gathered) {
  Registers& r = m.r;
  switch (decode.opcode) {
    case 0x40:  // RTI
      r.s = (r.s + 3) & 0xFF;
      unpack_status(r, gathered & 0xFF);
      r.pc = gathered >> 8 & 0xFFFF;
      m.moved = true;
      break;
    case 0x00: {  // BRK
      const uint32_t back = (r.pc + 1) & 0xFFFF, status = pack_status(r);
      r.i = 1;
      r.pc = gathered;
      m.moved = true;
      return back >> 8 | (back & 0xFF) << 8 | status << 16;
    }
    case kJamCode: r.jammed = 1; break;
    case 0x83: case 0x87: case 0x8F: case 0x97: return r.a & r.x;  // SAX
    case 0x93: case 0x9B: case 0x9C: case 0x9E: case 0x9F:
      return unstable_store(r, decode.opcode, address);
    case 0x0B: case 0x2B: case 0x4B: case 0x6B: case 0x8B: case 0xAB: case 0xBB: case 0xCB:
      undocumented_read(r, decode.opcode, value);
      break;
    default: compute_second(r, decode.opcode, value); break;
  }
  return 0;
}

template <class Decode, class Machine>
CULE_INLINE uint32_t do_rare(const Decode decode, Machine& m, uint32_t operand, uint32_t address,
                             uint32_t value, uint32_t gathered) {
  constexpr RareOps kOps = Machine::kRareOps;
  if (is_common_op<kOps>(decode.opcode)) return do_common_op(decode, m, operand, gathered);
  if (!is_used_op<kOps>(decode.opcode)) return do_rarest(decode, m, address, value, gathered);
  do_used_op(decode, m, gathered);
  return 0;
}

template <class Decode, class Machine>
CULE_INLINE void execute_rare(const Decode decode, Machine& m, uint32_t operand, uint32_t address,
                              uint32_t value) {
  constexpr RareOps kOps = Machine::kRareOps;
  const uint32_t opcode = decode.opcode;
  uint32_t gathered = 0;
  repeat(decode, bytes_to_gather<kOps>(opcode), [&](uint32_t i) CULE_INLINE_LAMBDA {
    gathered |= m.read(gathered_from<kOps>(opcode, m.r, operand, i)) << 8 * i;
  });
  const uint32_t bytes = do_rare(decode, m, operand, address, value, gathered);
  // RTS reads the byte before the next instruction, which a bank-switching cartridge can notice.
  if (opcode == 0x60 && m.is_special(gathered & 0xFFFF)) m.read(gathered & 0xFFFF);
  if (stores_rarely<kOps>(opcode)) m.write(address, bytes, false);
  repeat(decode, bytes_to_push<kOps>(opcode), [&](uint32_t i) CULE_INLINE_LAMBDA {
    const uint32_t at = 0x100 | m.r.s;
    m.r.s = (m.r.s - 1) & 0xFF;
    m.write(at, bytes >> 8 * i & 0xFF, i > 0);
  });
}

// Executes the instruction at `pc`, whose operand is `operand`. Returns the next one.
template <class Decode, class Machine>
CULE_INLINE MicroOp execute(const Decode decode, Machine& m, uint32_t operand) {
  constexpr bool kDoesAll = Machine::kRareOps == RareOps::kAll;
  const uint32_t control = decode.control;
  // A slow fetch begins with what the last instruction left on the bus.
  m.bus = kDoesAll && decode.opcode == kFetchSlowlyCode ? m.bus : operand >> 8;
  m.moved = false;
  advance(decode, m, operand);
  MicroOp next = m.look_ahead();

  // On a machine with less than kAll, rare instructions skip the rest of the common path.
  if constexpr (!kDoesAll && Decode::may(kRare)) {
    if ((control & kRare) && !m.leaves_rare(decode.opcode, operand)) {
      execute_rare(decode, m, operand, operand, 0);
      return m.moved ? m.look_ahead() : next;
    }
  }

  const uint32_t address = effective_address(decode, m, operand);
  if constexpr (!kDoesAll && Decode::may(kReads | kWrites | kSetsV | kRare)) {
    if (m.leaves(control, address)) return m.leave();
  }
  const uint32_t reg = source_register(decode, m.r), carry = m.r.c;
  uint32_t read = control & kFromRegister ? reg : operand & 0xFF;
  if constexpr (Decode::may(kReads)) read = m.read_if(control & kReads, address, read);
  const uint32_t value = compute(decode, m.r, reg, read);
  write_back(decode, m.r, value);
  if constexpr (Decode::may(kWrites)) m.write_if(control & kWrites, address, value);
  if constexpr (kDoesAll) {
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
