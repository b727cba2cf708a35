// Writes that only set a field of the TIA's state: where the field is, and what of the value goes
// into it. Which registers these are is in write_facts.h. Where only the running program knows
// which of them a write is to, all take the same few instructions, so that lanes of a warp that
// write to different ones stay together. They do what write_register (tia.h) does; tests/chips
// compares them.
#pragma once

#include "tia/state.h"

namespace cule {

// Where a field is in TiaState: from which word, which bit of it, and how many bits; from which bit
// on the value has them. Packed from bit 0, 8, 16 and 24. Two flags beside.
constexpr uint32_t kFieldMirrored = 1u << 30;  // the value's bits the other way round
constexpr uint32_t kFieldColor = 1u << 31;     // the lowest bit is color_loss
constexpr uint32_t field_at(size_t byte, uint32_t bit, uint32_t width, uint32_t value_bit) {
  return static_cast<uint32_t>(byte / 4) | (static_cast<uint32_t>(byte % 4 * 8) + bit) << 8 |
         width << 16 | value_bit << 24;
}
constexpr uint32_t color_at(size_t byte) { return field_at(byte, 0, 8, 0) | kFieldColor; }
// Motion is the highest four bits of a value; `at` has four bits for each object.
constexpr uint32_t motion_at(size_t at, uint32_t object) { return field_at(at, 4 * object, 4, 4); }

// Sets a field, as field_at has it. Returns whether that changes it.
CULE_INLINE bool set_field(TiaState& tia, uint32_t field, uint32_t value) {
  const uint32_t shift = field >> 8 & 0x1F, mask = (1u << (field >> 16 & 0x0F)) - 1;
  const uint32_t color = field >> 31;
  uint32_t bits = (field & kFieldMirrored ? reverse_byte(value) : value) >> (field >> 24 & 7);
  bits = (bits & ~color) | (tia.color_loss & color);
  void* at = __builtin_assume_aligned(reinterpret_cast<char*>(&tia) + 4 * (field & 0x1F), 4);
  uint32_t word;
  memcpy(&word, at, sizeof word);
  const uint32_t changed = (word ^ bits << shift) & mask << shift;
  word ^= changed;
  memcpy(at, &word, sizeof word);
  return changed != 0;
}

}  // namespace cule
