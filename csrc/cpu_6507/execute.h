// One 6507 instruction: fetch, effective address, read, compute, write-back.
//
// There is one path for all opcodes, steered by the decode word (opcode_table.h). `Decode` says where the word comes from:
// `StaticDecode<opcode>` makes it a compile-time constant, so that the path folds to the few lines that the opcode
// needs (the CPU build switches over 256 of them); `DynamicDecode` reads it from the table at run time, so that the 32
// lanes of a warp walk the path together whatever their opcodes.
//
// Timing is by instruction, as in ale-py: all of an instruction's cycles have passed when it touches memory. There are no
// dummy reads or double writes, but for the stack and the return address, where ale-py has them.
//
// `Machine` offers `r` (Registers), `cycle`, `bus` (the last byte on the data bus), `read(address)`, `read_low(address)` for
// addresses below $180, `write(address, value, after_write)`, `write_low` and `is_special(address)`.
#pragma once

#include "cpu_6507/arithmetic.h"

namespace cule {

template <int kOpcode>
struct StaticDecode {
  static constexpr uint32_t word = decode_word(kOpcode);
  static constexpr Instruction instruction() { return kOpcodeRows[kOpcode].instruction; }
};

// The rare undocumented instructions share one `alu` code; at run time their opcode tells them apart.
CULE_INLINE Instruction rare_instruction(uint32_t opcode) {
  switch (opcode) {
    case 0x0B: case 0x2B: return kAnc;
    case 0x4B: return kAlr;
    case 0x6B: return kArr;
    case 0x8B: return kAne;
    case 0xAB: return kLxa;
    case 0xBB: return kLas;
    case 0xCB: return kSbx;
    case 0x93: case 0x9F: return kSha;
    case 0x9B: return kShs;
    case 0x9E: return kShx;
    default: return kShy;
  }
}

struct DynamicDecode {
  uint32_t word;
  uint32_t opcode;
  CULE_INLINE Instruction instruction() const { return rare_instruction(opcode); }
};

constexpr uint32_t operand_bytes(uint32_t mode) {
  return mode == kImp ? 0 : (mode >= kAbs && mode <= kInd) ? 2 : 1;
}

// The address that the operand stands at. `low` and `high` are the operand bytes. Adds the cycle for crossing a page.
template <class Decode, class Machine>
CULE_INLINE uint32_t effective_address(const Decode decode, Machine& m, uint32_t low, uint32_t high) {
  const uint32_t mode = decode.word & 0x0F;
  Registers& r = m.r;
  const uint32_t index = mode == kZpX || mode == kAbsX || mode == kIndX   ? r.x
                         : mode == kZpY || mode == kAbsY || mode == kIndY ? r.y
                                                                          : 0;
  if (mode <= kZpY) return (low + index) & 0xFF;
  uint32_t base = low | high << 8;
  if (mode == kInd) {
    // The high byte comes from the same page, even where the pointer is the page's last byte.
    const uint32_t pointer = base;
    base = m.read(pointer);
    return base | m.read((pointer & 0xFF00) | ((pointer + 1) & 0xFF)) << 8;
  }
  if (mode == kIndX || mode == kIndY) {
    // The second pointer byte of $FF comes from $100, as in ale-py, and not from $00.
    const uint32_t pointer = mode == kIndX ? (low + index) & 0xFF : low;
    base = m.read_low(pointer);
    base |= m.read_low(pointer + 1) << 8;
    if (mode == kIndX) return base;
  }
  const uint32_t address = base + index;
  if (decode.word & kPagePenalty) m.cycle += ((base ^ address) & 0xFF00) != 0;
  return address & 0xFFFF;
}

template <class Decode>
CULE_INLINE uint32_t source_register(const Decode decode, const Registers& r) {
  const uint32_t which = decode.word >> kSourceShift & 7;
  return which == kRegA ? r.a : which == kRegX ? r.x : which == kRegY ? r.y : which == kRegS ? r.s : r.a & r.x;
}

template <class Decode>
CULE_INLINE void write_register(const Decode decode, Registers& r, uint32_t value) {
  const uint32_t which = decode.word >> kDestShift & 7;
  if (which == kRegA || which == kRegAX) r.a = value;
  if (which == kRegX || which == kRegAX) r.x = value;
  if (which == kRegY) r.y = value;
  if (which == kRegS) r.s = value;
}

CULE_INLINE uint32_t flag_value(const Registers& r, uint32_t flag) {
  return flag == kFlagN ? r.n >> 7 & 1 : flag == kFlagV ? r.v : flag == kFlagC ? r.c : r.z == 0;
}

CULE_INLINE void set_flag_value(Registers& r, uint32_t flag, uint32_t value) {
  if (flag == kFlagC) r.c = value;
  if (flag == kFlagI) r.i = value;
  if (flag == kFlagV) r.v = value;
  if (flag == kFlagD) r.d = value;
}

template <class Machine>
CULE_INLINE void push(Machine& m, uint32_t value, bool after_write) {
  const uint32_t s = m.r.s;
  m.r.s = (s - 1) & 0xFF;
  m.write_low(0x100 | s, value, after_write);
}

template <class Machine>
CULE_INLINE uint32_t pull(Machine& m) {
  m.r.s = (m.r.s + 1) & 0xFF;
  return m.read_low(0x100 | m.r.s);
}

// Instructions that move the program counter or the stack. `pc` already points past the instruction.
template <class Decode, class Machine>
CULE_INLINE void change_flow(const Decode decode, Machine& m, uint32_t operand, uint32_t address) {
  Registers& r = m.r;
  switch (decode.word >> kFlowShift & 0x0F) {
    case kBranch: {
      if (flag_value(r, decode.word >> kSourceShift & 7) != (decode.word >> kDestShift & 7)) break;
      const uint32_t target = (r.pc + (operand ^ 0x80) - 0x80) & 0xFFFF;
      m.cycle += 1 + (((r.pc ^ target) & 0xFF00) != 0);
      r.pc = target;
      break;
    }
    case kJump: r.pc = address; break;
    case kCall: {
      const uint32_t back = r.pc - 1;
      push(m, back >> 8 & 0xFF, false);
      push(m, back & 0xFF, true);
      r.pc = address;
      break;
    }
    case kReturn: {
      const uint32_t low = pull(m);
      const uint32_t last = low | pull(m) << 8;
      // The byte before the next instruction is read, which a bank-switching cartridge can notice.
      if (m.is_special(last)) m.read(last);
      r.pc = (last + 1) & 0xFFFF;
      break;
    }
    case kInterruptReturn: {
      unpack_status(r, pull(m));
      const uint32_t low = pull(m);
      r.pc = low | pull(m) << 8;
      break;
    }
    case kBreak: {
      const uint32_t back = (r.pc + 1) & 0xFFFF;
      push(m, back >> 8, false);
      push(m, back & 0xFF, true);
      push(m, pack_status(r), true);
      r.i = 1;
      const uint32_t low = m.read(0xFFFE);
      r.pc = low | m.read(0xFFFF) << 8;
      break;
    }
    case kPush: push(m, (decode.word >> kSourceShift & 7) == kRegA ? r.a : pack_status(r), false); break;
    case kPull: {
      m.read_low(0x100 | r.s);
      const uint32_t value = pull(m);
      if ((decode.word >> kDestShift & 7) == kRegA) set_a(r, value);
      else unpack_status(r, value);
      break;
    }
    case kHalt: r.jammed = 1; break;
    default: break;
  }
}

// Computes; returns the byte that a store or a read-modify-write puts back.
template <class Decode>
CULE_INLINE uint32_t compute(const Decode decode, Registers& r, uint32_t operand, uint32_t address) {
  const uint32_t word = decode.word;
  const uint32_t reg = source_register(decode, r);
  const uint32_t shifted = word & kReads ? operand : reg;  // the shifts and steps work on memory or on a register
  uint32_t value = 0;
  switch (word >> kAluShift & 0x1F) {
    case kPassM: value = operand; break;
    case kPassR: value = reg; break;
    case kOrA: value = r.a | operand; break;
    case kAndA: value = r.a & operand; break;
    case kEorA: value = r.a ^ operand; break;
    case kAdcA: add(r, operand); return 0;
    case kSbcA: subtract(r, operand); return 0;
    case kCompare: compare(r, reg, operand); return 0;
    case kBitTest:
      r.n = operand;
      r.v = operand >> 6 & 1;
      r.z = r.a & operand;
      return 0;
    case kShiftLeft:
      r.c = shifted >> 7;
      value = shifted << 1 & 0xFF;
      break;
    case kRotateLeft:
      value = (shifted << 1 | r.c) & 0xFF;
      r.c = shifted >> 7;
      break;
    case kShiftRight:
      r.c = shifted & 1;
      value = shifted >> 1;
      break;
    case kRotateRight:
      value = shifted >> 1 | r.c << 7;
      r.c = shifted & 1;
      break;
    case kIncrement: value = (shifted + 1) & 0xFF; break;
    case kDecrement: value = (shifted - 1) & 0xFF; break;
    case kFlag: set_flag_value(r, word >> kSourceShift & 7, word >> kDestShift & 7); return 0;
    default:
      if (word & kWrites) return rare_written(r, decode.instruction(), address);
      rare_read(r, decode.instruction(), operand);
      return 0;
  }
  write_register(decode, r, value);
  if (word & kSetsNZ) r.n = r.z = value;
  return value;
}

// The second half of the undocumented read-modify-writes.
template <class Decode>
CULE_INLINE void compute_second(const Decode decode, Registers& r, uint32_t value) {
  switch (decode.word >> kSecondShift & 7) {
    case kThenOr: set_a(r, r.a | value); break;
    case kThenAnd: set_a(r, r.a & value); break;
    case kThenEor: set_a(r, r.a ^ value); break;
    case kThenAdc: add(r, value); break;
    case kThenSbc: subtract(r, value); break;
    case kThenCompare: compare(r, r.a, value); break;
    default: break;
  }
}

// Executes the instruction whose operand bytes are `low` and `high`; `pc` points past it, its base cycles have passed.
template <class Decode, class Machine>
CULE_INLINE void execute(const Decode decode, Machine& m, uint32_t low, uint32_t high) {
  const uint32_t word = decode.word;
  const uint32_t mode = word & 0x0F;
  const bool in_low_memory = mode == kZp || mode == kZpX || mode == kZpY;
  const uint32_t flow = word >> kFlowShift & 0x0F;
  uint32_t address = 0;
  uint32_t operand = low;
  if (mode != kImp && mode != kImm && mode != kRel) {
    address = effective_address(decode, m, low, high);
    if (word & kReads) operand = in_low_memory ? m.read_low(address) : m.read(address);
  }
  if (flow != kNext) return change_flow(decode, m, operand, address);
  const uint32_t value = compute(decode, m.r, operand, address);
  if (word & kWrites) {
    if (in_low_memory) m.write_low(address, value, false);
    else m.write(address, value, false);
    if (word >> kSecondShift & 7) compute_second(decode, m.r, value);
  }
}

}  // namespace cule
