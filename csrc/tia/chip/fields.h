// Writes that only set a field of the TIA's state: where the field is, and which bits of the value
// it gets. write_facts.h says which registers these are. If the register is known only at run time,
// all such writes execute the same few instructions. Thus lanes of a warp that write to different
// registers do not diverge.
//
// These writes do the same as write_register (tia.h), which models the chip. tests/chips compares
// the two.
#pragma once

#include "tia/chip/state.h"

namespace cule {

// A field of TiaState, packed into a word: from bit 0 the number of its word, from bit 8 its first
// bit in that word, from bit 16 its width in bits, from bit 24 its first bit in the value. The
// highest bits are two flags.
constexpr uint32_t kFieldMirrored = 1u << 30;  // the value's bits are reversed
constexpr uint32_t kFieldColor = 1u << 31;     // the field's lowest bit is color_loss
constexpr uint32_t field_at(size_t byte, uint32_t bit, uint32_t width, uint32_t value_bit) {
  return static_cast<uint32_t>(byte / 4) | (static_cast<uint32_t>(byte % 4 * 8) + bit) << 8 |
         width << 16 | value_bit << 24;
}
constexpr uint32_t color_at(size_t byte) { return field_at(byte, 0, 8, 0) | kFieldColor; }
// Motion is the highest four bits of a value; `at` has four bits for each object.
constexpr uint32_t motion_at(size_t at, uint32_t object) { return field_at(at, 4 * object, 4, 4); }

// Sets a field that field_at describes. Returns whether the field changes.
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
