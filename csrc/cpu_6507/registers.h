// The 6507's registers, in the form in which they are kept during a step and between steps.
#pragma once

#include "common/platform.h"

namespace cule {

// Each field holds a byte (pc: 16 bits) in a 32-bit word, as CPUs and GPUs compute with such words.
// Each flag has a field of its own, in the form that is cheapest to set.
struct Registers {
  uint32_t pc, a, x, y, s;
  uint32_t n, v;  // N and V: bit 7 of each
  uint32_t z;     // Z is set if this is zero
  uint32_t c, d, i;  // 0 or 1
  uint32_t jammed;      // a JAM opcode has halted the processor until the next reset
};

// Reset clears the registers; the caller loads `pc` from the reset vector.
CULE_INLINE void reset_registers(Registers& r) {
  r = Registers{};
  r.s = 0xFF;
  r.z = 1;
}

// The decimal flag in the status register.
constexpr uint32_t kDecimalInStatus = 0x08;

// The status register as an instruction pushes it. Bits 4 (B) and 5 are always set, as the 6507 has
// no interrupts.
CULE_INLINE uint32_t pack_status(const Registers& r) {
  return (r.n & 0x80) | (r.v & 0x80) >> 1 | 0x30 | r.d << 3 | r.i << 2 | (r.z == 0) << 1 | r.c;
}

CULE_INLINE void unpack_status(Registers& r, uint32_t status) {
  r.n = status & 0x80;
  r.v = status << 1 & 0x80;
  r.d = status >> 3 & 1;
  r.i = status >> 2 & 1;
  r.z = ~status & 2;
  r.c = status & 1;
}

}  // namespace cule
