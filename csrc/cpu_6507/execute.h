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
  static constexpr bool kIsStatic = true;
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
  static constexpr bool kIsStatic = false;
  uint32_t word;
  uint32_t opcode;
  CULE_INLINE Instruction instruction() const { return rare_instruction(opcode); }
};

constexpr uint32_t operand_bytes(uint32_t mode) {
  return mode == kImp ? 0 : (mode >= kAbs && mode <= kInd) ? 2 : 1;
}

// Bytes that an instruction reads one after the other before it can do anything else: a pointer, what it pulls off the stack,
// the break vector. Byte i stands at `base + i`, but only the bits in `carry` move on.
struct Gather {
  uint32_t base, carry, count;
};

template <class Decode>
CULE_INLINE Gather bytes_to_gather(const Decode decode, const Registers& r, uint32_t low, uint32_t high) {
  const uint32_t mode = decode.word & 0x0F;
  switch (decode.word >> kFlowShift & 0x0F) {
    case kReturn: return {0x100 | ((r.s + 1) & 0xFF), 0xFF, 2};
    case kInterruptReturn: return {0x100 | ((r.s + 1) & 0xFF), 0xFF, 3};
    case kPull: return {0x100 | r.s, 0xFF, 2};  // the byte below the wanted one is read too
    case kBreak: return {0xFFFE, 0xFFFF, 2};
    default: break;
  }
  // An indirect jump takes both bytes from one page; the second pointer byte of $FF comes from $100, as in ale-py, and not from $00.
  if (mode == kInd) return {low | high << 8, 0xFF, 2};
  if (mode == kIndX) return {(low + r.x) & 0xFF, 0xFFFF, 2};
  if (mode == kIndY) return {low, 0xFFFF, 2};
  return {0, 0, 0};
}

// The address that the operand stands at. `low` and `high` are the operand bytes, `gathered` what a pointer held. Adds the cycle
// for crossing a page.
template <class Decode, class Machine>
CULE_INLINE uint32_t effective_address(const Decode decode, Machine& m, uint32_t low, uint32_t high, uint32_t gathered) {
  const uint32_t mode = decode.word & 0x0F;
  const uint32_t index = mode == kZpX || mode == kAbsX                       ? m.r.x
                         : mode == kZpY || mode == kAbsY || mode == kIndY ? m.r.y
                                                                          : 0;
  if (mode <= kZpY) return (low + index) & 0xFF;
  const uint32_t base = mode >= kInd ? gathered : low | high << 8;
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

// Bytes that an instruction writes: byte i of `bytes`, to `address`, or onto the stack from the top down.
struct Scatter {
  uint32_t bytes, count, address;
  bool onto_stack;
};

// Instructions that move the program counter or the stack; returns what they push. `pc` already points past the instruction.
template <class Decode, class Machine>
CULE_INLINE Scatter change_flow(const Decode decode, Machine& m, uint32_t operand, uint32_t address, uint32_t gathered) {
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
      const uint32_t back = (r.pc - 1) & 0xFFFF;
      r.pc = address;
      return {back >> 8 | (back & 0xFF) << 8, 2, 0, true};
    }
    case kReturn:
      r.s = (r.s + 2) & 0xFF;
      r.pc = (gathered + 1) & 0xFFFF;
      break;
    case kInterruptReturn:
      r.s = (r.s + 3) & 0xFF;
      unpack_status(r, gathered & 0xFF);
      r.pc = gathered >> 8 & 0xFFFF;
      break;
    case kBreak: {
      const uint32_t back = (r.pc + 1) & 0xFFFF, status = pack_status(r);
      r.i = 1;
      r.pc = gathered;
      return {back >> 8 | (back & 0xFF) << 8 | status << 16, 3, 0, true};
    }
    case kPush: return {(decode.word >> kSourceShift & 7) == kRegA ? r.a : pack_status(r), 1, 0, true};
    case kPull:
      r.s = (r.s + 1) & 0xFF;
      if ((decode.word >> kDestShift & 7) == kRegA) set_a(r, gathered >> 8 & 0xFF);
      else unpack_status(r, gathered >> 8 & 0xFF);
      break;
    case kHalt: r.jammed = 1; break;
    default: break;
  }
  return {0, 0, 0, false};
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
//
// Memory is touched in three places only, whatever the opcode, so that the lanes of a warp meet there.
template <class Decode, class Machine>
CULE_INLINE void execute(const Decode decode, Machine& m, uint32_t low, uint32_t high) {
  const uint32_t word = decode.word;
  const uint32_t mode = word & 0x0F;
  const uint32_t flow = word >> kFlowShift & 0x0F;
  const bool in_low_memory = Decode::kIsStatic && (mode == kZp || mode == kZpX || mode == kZpY);

  const Gather gather = bytes_to_gather(decode, m.r, low, high);
  uint32_t gathered = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < gather.count; ++i) {
    const uint32_t at = (gather.base & ~gather.carry) | ((gather.base + i) & gather.carry);
    gathered |= m.read(at) << 8 * i;
  }

  uint32_t address = 0;
  uint32_t operand = low;
  bool reads = false;
  if (mode != kImp && mode != kImm && mode != kRel) {
    address = effective_address(decode, m, low, high, gathered);
    reads = (word & kReads) != 0;
  } else if (flow == kReturn && m.is_special(gathered)) {
    // The byte before the next instruction is read, which a bank-switching cartridge can notice.
    address = gathered;
    reads = true;
  }
  if (reads) operand = in_low_memory ? m.read_low(address) : m.read(address);

  Scatter scatter{0, 0, 0, false};
  if (flow != kNext) {
    scatter = change_flow(decode, m, operand, address, gathered);
  } else {
    const uint32_t value = compute(decode, m.r, operand, address);
    if (word & kWrites) scatter = {value, 1, address, false};
  }
#pragma unroll 1
  for (uint32_t i = 0; i < scatter.count; ++i) {
    const uint32_t byte = scatter.bytes >> 8 * i & 0xFF;
    const uint32_t at = scatter.onto_stack ? 0x100 | m.r.s : scatter.address;
    if (scatter.onto_stack) m.r.s = (m.r.s - 1) & 0xFF;
    if (in_low_memory) m.write_low(at, byte, i > 0);
    else m.write(at, byte, i > 0);
  }
  if (flow == kNext && (word >> kSecondShift & 7)) compute_second(decode, m.r, scatter.bytes);
}

}  // namespace cule
