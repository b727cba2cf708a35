// The rare instructions, which do more than the common path of execute.h: stack, subroutines and
// interrupts, flags, and what is undocumented.
//
// Each reads some bytes in a row, computes, and writes some bytes. `Decode` and `Machine` are those
// of execute.h.
#pragma once

#include "cpu_6507/arithmetic.h"

namespace cule {

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

}  // namespace cule
