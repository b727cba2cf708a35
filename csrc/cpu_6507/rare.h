// The 6507's rare instructions: those that do more than the common path of execute.h. They are the
// instructions for the stack, subroutines, interrupts and flags, and the undocumented ones.
//
// Each reads up to three consecutive bytes, computes, and writes up to three bytes. `Decode` and
// `Machine` are those of execute.h, which also gives the source.
#pragma once

#include "cpu_6507/arithmetic.h"

namespace cule {

// Calls `each(i)` for each i below `count`. The loop is unrolled only if the instruction is known
// at compile time.
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

// Conditions for opcode_is: what a rare instruction does. Instructions above tier `kLast` meet
// none, so a bus has no code for instructions that it does not execute.
template <Tier kLast, uint32_t kCount>
struct ReadsBytes {
  static constexpr bool holds(const InstructionRow& row) {
    return row.tier <= kLast && row.reads == kCount;
  }
};
template <Tier kLast, uint32_t kCount>
struct PushesBytes {
  static constexpr bool holds(const InstructionRow& row) {
    return row.tier <= kLast && row.pushes == kCount;
  }
};
template <Tier kLast>
struct StoresByte {
  static constexpr bool holds(const InstructionRow& row) {
    return row.tier <= kLast && row.stores;
  }
};
template <Tier kTier>
struct IsOfTier {
  static constexpr bool holds(const InstructionRow& row) { return row.tier == kTier; }
};

// How many consecutive bytes an instruction reads, and how many it pushes.
template <Tier kLast>
CULE_INLINE constexpr uint32_t bytes_to_gather(uint32_t opcode) {
  if (opcode_is<ReadsBytes<kLast, 2>>(opcode)) return 2;
  return opcode_is<ReadsBytes<kLast, 3>>(opcode) ? 3 : 0;
}
template <Tier kLast>
CULE_INLINE constexpr uint32_t bytes_to_push(uint32_t opcode) {
  if (opcode_is<PushesBytes<kLast, 2>>(opcode)) return 2;
  if (opcode_is<PushesBytes<kLast, 1>>(opcode)) return 1;
  return opcode_is<PushesBytes<kLast, 3>>(opcode) ? 3 : 0;
}

// The address of byte `i` of those that the instruction reads.
template <Tier kLast>
CULE_INLINE uint32_t gathered_from(uint32_t opcode, const Registers& r, uint32_t operand,
                                   uint32_t i) {
  constexpr uint32_t kBreakVector = 0xFFFE;
  // Both bytes of a jump's target are on one page.
  if (is_one_of<kJmpIndirect>(opcode)) return (operand & 0xFF00) | ((operand + i) & 0xFF);
  if (kLast == Tier::kRarest && is_one_of<kBrk>(opcode)) return kBreakVector + i;
  const bool pulls = is_one_of<kPla>(opcode) || (kLast >= Tier::kUsed && is_one_of<kPlp>(opcode));
  // PLA and PLP also read the byte below the one that they pull.
  return 0x100 | ((r.s + !pulls + i) & 0xFF);
}

// The rare instructions, with a function for each tier. `gathered` holds the bytes that were read.
// The functions return the bytes to write, with the first byte in the low bits.
template <class Decode, class Machine>
CULE_INLINE uint32_t do_frequent(const Decode decode, Machine& m, uint32_t operand,
                                  uint32_t gathered) {
  Registers& r = m.r;
  switch (decode.opcode) {
    case code_of(kJsr): {
      const uint32_t back = (r.pc - 1) & 0xFFFF;
      r.pc = operand;
      m.moved = true;
      return back >> 8 | (back & 0xFF) << 8;
    }
    case code_of(kRts):
      r.s = (r.s + 2) & 0xFF;
      r.pc = (gathered + 1) & 0xFFFF;
      m.moved = true;
      return 0;
    case code_of(kPha): return r.a;
    case code_of(kPhp): return pack_status(r);
    case code_of(kJmpIndirect):
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
CULE_INLINE void do_used(const Decode decode, Machine& m, uint32_t gathered) {
  Registers& r = m.r;
  switch (decode.opcode) {
    case code_of(kPlp):
      r.s = (r.s + 1) & 0xFF;
      unpack_status(r, gathered >> 8 & 0xFF);
      break;
    case code_of(kCli): r.i = 0; break;
    case code_of(kSei): r.i = 1; break;
    case code_of(kClv): r.v = 0; break;
    case code_of(kCld): r.d = 0; break;
    default: r.d = 1; break;  // SED
  }
}

// The instructions for interrupts, which the 6507 does not have, and the undocumented instructions.
// `address` is the operand's address, and `value` the common path's result.
template <class Decode, class Machine>
CULE_INLINE uint32_t do_rarest(const Decode decode, Machine& m, uint32_t address, uint32_t value,
                               uint32_t gathered) {
  Registers& r = m.r;
  switch (decode.opcode) {
    case code_of(kRti):
      r.s = (r.s + 3) & 0xFF;
      unpack_status(r, gathered & 0xFF);
      r.pc = gathered >> 8 & 0xFFFF;
      m.moved = true;
      break;
    case code_of(kBrk): {
      const uint32_t back = (r.pc + 1) & 0xFFFF, status = pack_status(r);
      r.i = 1;
      r.pc = gathered;
      m.moved = true;
      return back >> 8 | (back & 0xFF) << 8 | status << 16;
    }
    case kJamCode: r.jammed = 1; break;
    default:
      if (is_one_of<kSax>(decode.opcode)) return r.a & r.x;
      if (opcode_is<StoresByte<Tier::kRarest>>(decode.opcode))
        return unstable_store(r, decode.opcode, address);
      if (is_one_of<kAlr, kAnc, kAne, kArr, kLas, kLxa, kSbx>(decode.opcode))
        undocumented_read(r, decode.opcode, value);
      else
        compute_second(r, decode.opcode, value);
  }
  return 0;
}

template <class Decode, class Machine>
CULE_INLINE uint32_t do_rare(const Decode decode, Machine& m, uint32_t operand, uint32_t address,
                             uint32_t value, uint32_t gathered) {
  constexpr Tier kLast = Machine::kLastTier;
  if (kLast == Tier::kFrequent || opcode_is<IsOfTier<Tier::kFrequent>>(decode.opcode))
    return do_frequent(decode, m, operand, gathered);
  if (kLast == Tier::kRarest && !opcode_is<IsOfTier<Tier::kUsed>>(decode.opcode))
    return do_rarest(decode, m, address, value, gathered);
  do_used(decode, m, gathered);
  return 0;
}

template <class Decode, class Machine>
CULE_INLINE void execute_rare(const Decode decode, Machine& m, uint32_t operand, uint32_t address,
                              uint32_t value) {
  constexpr Tier kLast = Machine::kLastTier;
  const uint32_t opcode = decode.opcode;
  uint32_t gathered = 0;
  repeat(decode, bytes_to_gather<kLast>(opcode), [&](uint32_t i) CULE_INLINE_LAMBDA {
    gathered |= m.read(gathered_from<kLast>(opcode, m.r, operand, i)) << 8 * i;
  });
  const uint32_t bytes = do_rare(decode, m, operand, address, value, gathered);
  // RTS reads the byte before the next instruction. This read can switch a cartridge's banks.
  if (is_one_of<kRts>(opcode) && m.is_special(gathered & 0xFFFF)) m.read(gathered & 0xFFFF);
  if (opcode_is<StoresByte<kLast>>(opcode)) m.write(address, bytes, false);
  repeat(decode, bytes_to_push<kLast>(opcode), [&](uint32_t i) CULE_INLINE_LAMBDA {
    const uint32_t at = 0x100 | m.r.s;
    m.r.s = (m.r.s - 1) & 0xFF;
    m.write(at, bytes >> 8 * i & 0xFF, i > 0);
  });
}

}  // namespace cule
