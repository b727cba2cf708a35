// Addition and subtraction of the 6507, binary and decimal, and the undocumented instructions that
// compute.
//
// Decimal mode follows ale-py, which differs from an NMOS chip: N and Z follow the decimal result,
// V compares the signs of the decimal result and the operands, and subtraction sets C by a plain
// binary comparison.
#pragma once

#include "cpu_6507/predecoded.h"
#include "cpu_6507/registers.h"

namespace cule {

CULE_INLINE uint32_t from_bcd(uint32_t byte) { return (byte >> 4) * 10 + (byte & 0x0F); }
CULE_INLINE uint32_t to_bcd(uint32_t value) { return (value / 10 % 10) << 4 | value % 10; }

CULE_INLINE void set_a(Registers& r, uint32_t value) { r.a = r.n = r.z = value; }

CULE_INLINE void add_binary(Registers& r, uint32_t m) {
  const uint32_t sum = r.a + m + r.c;
  r.v = ~(r.a ^ m) & (r.a ^ sum) & 0x80;
  r.c = sum >> 8;
  set_a(r, sum & 0xFF);
}

// V: whether the sign of the decimal result differs from the signs of both operands.
CULE_INLINE uint32_t decimal_overflow(uint32_t before, uint32_t after, uint32_t m) {
  return (before ^ after) & (after ^ m) & 0x80;
}

CULE_INLINE void add(Registers& r, uint32_t m) {
  if (!r.d) return add_binary(r, m);
  const uint32_t before = r.a;
  const uint32_t sum = from_bcd(before) + from_bcd(m) + r.c;
  r.c = sum > 99;
  set_a(r, to_bcd(sum & 0xFF));
  r.v = decimal_overflow(before, r.a, m);
}

CULE_INLINE void subtract(Registers& r, uint32_t m) {
  if (!r.d) return add_binary(r, m ^ 0xFF);
  const uint32_t before = r.a;
  const uint32_t borrow = r.c ^ 1;
  int difference = static_cast<int>(from_bcd(before)) - static_cast<int>(from_bcd(m) + borrow);
  if (difference < 0) difference += 100;
  // The difference is still negative only if an operand has digits above 9. ale-py's table then
  // converts the other way.
  const uint32_t byte = static_cast<uint32_t>(difference) & 0xFF;
  set_a(r, difference < 0 ? from_bcd(byte) & 0xFF : to_bcd(byte));
  r.c = before >= m + borrow;
  r.v = decimal_overflow(before, r.a, m);
}

CULE_INLINE void compare(Registers& r, uint32_t reg, uint32_t m) {
  r.c = reg >= m;
  r.n = r.z = (reg - m) & 0xFF;
}

// ARR: AND, then rotate right, with flags from a half-finished decimal adjustment.
CULE_INLINE void and_rotate_right(Registers& r, uint32_t m) {
  const uint32_t value = r.a & m;
  const uint32_t rotated = value >> 1 | r.c << 7;
  r.n = r.z = rotated;
  r.a = rotated;
  if (!r.d) {
    r.c = rotated >> 6 & 1;
    r.v = (rotated << 1 ^ rotated << 2) & 0x80;
    return;
  }
  r.v = (value ^ rotated) << 1 & 0x80;
  if ((value & 0x0F) + (value & 0x01) > 0x05) r.a = (r.a & 0xF0) | ((r.a + 0x06) & 0x0F);
  r.c = (value & 0xF0) + (value & 0x10) > 0x50;
  if (r.c) r.a = (r.a + 0x60) & 0xFF;
}

// The undocumented instructions that take a byte and change registers only.
CULE_INLINE void undocumented_read(Registers& r, uint32_t opcode, uint32_t m) {
  constexpr uint32_t kUnstable = 0xEE;  // the bits of A that ANE and LXA treat as set, as in ale-py
  switch (opcode) {
    case code_of(kAnc, 0): case code_of(kAnc, 1):
      set_a(r, r.a & m);
      r.c = r.a >> 7;
      break;
    case code_of(kAlr):
      r.a &= m;
      r.c = r.a & 1;
      set_a(r, r.a >> 1);
      break;
    case code_of(kArr): and_rotate_right(r, m); break;
    case code_of(kAne): set_a(r, (r.a | kUnstable) & r.x & m); break;
    case code_of(kLxa):
      set_a(r, (r.a | kUnstable) & m);
      r.x = r.a;
      break;
    case code_of(kLas):
      set_a(r, r.s & m);
      r.x = r.s = r.a;
      break;
    case code_of(kSbx): {
      const uint32_t both = r.a & r.x;
      compare(r, both, m);
      r.x = r.n;
      break;
    }
    default: break;
  }
}

// The byte that an unstable store writes to `address`: one or two registers, AND the high byte of
// the address plus one.
CULE_INLINE uint32_t unstable_store(Registers& r, uint32_t opcode, uint32_t address) {
  const uint32_t mask = ((address >> 8) + 1) & 0xFF;
  switch (opcode) {
    case code_of(kSha, 0): case code_of(kSha, 1): return r.a & r.x & mask;
    case code_of(kShs): return (r.s = r.a & r.x) & mask;
    case code_of(kShx): return r.x & mask;
    default: return r.y & mask;  // SHY
  }
}

// The highest three bits of an opcode. They distinguish instructions with the same modes.
constexpr uint32_t group_of(uint32_t opcode) { return opcode >> 5; }

// The second half of an undocumented read-modify-write instruction. `value` is the byte that the
// first half wrote.
CULE_INLINE void compute_second(Registers& r, uint32_t opcode, uint32_t value) {
  switch (group_of(opcode)) {
    case group_of(code_of(kSlo)): set_a(r, r.a | value); break;
    case group_of(code_of(kRla)): set_a(r, r.a & value); break;
    case group_of(code_of(kSre)): set_a(r, r.a ^ value); break;
    case group_of(code_of(kRra)): add(r, value); break;
    case group_of(code_of(kDcp)): compare(r, r.a, value); break;
    case group_of(code_of(kIsb)): subtract(r, value); break;
    default: break;
  }
}

}  // namespace cule
