// The registers that only set a field of the TIA's state, a row each: where the field is, and what
// of the value goes into it. Where only the running program knows which of them a write is to, all
// take the same few instructions, so that lanes of a warp that write to different ones stay
// together. What they do is what write_register (tia.h) does; tests/chips compares them.
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

// 0: the register does more than set a field, or nothing.
struct Fields {
  uint32_t of[tia_write::VDELBL + 1];
};
constexpr Fields fields_of_registers() {
  using namespace tia_write;
  constexpr size_t kPlayfield = offsetof(TiaState, playfield), kMotion = offsetof(TiaState, motion);
  constexpr size_t kColup = offsetof(TiaState, colup), kRefp = offsetof(TiaState, refp);
  constexpr size_t kEnam = offsetof(TiaState, enam), kVdelp = offsetof(TiaState, vdelp);
  Fields fields{};
  fields.of[VBLANK] = field_at(offsetof(TiaState, vblank), 0, 8, 0);
  fields.of[COLUP0] = field_at(kColup, 0, 8, 0) | kFieldColor;
  fields.of[COLUP1] = field_at(kColup + 1, 0, 8, 0) | kFieldColor;
  fields.of[COLUPF] = field_at(offsetof(TiaState, colupf), 0, 8, 0) | kFieldColor;
  fields.of[COLUBK] = field_at(offsetof(TiaState, colubk), 0, 8, 0) | kFieldColor;
  fields.of[REFP0] = field_at(kRefp, 0, 1, 3);
  fields.of[REFP1] = field_at(kRefp + 1, 0, 1, 3);
  fields.of[PF0] = field_at(kPlayfield, 0, 4, 4);
  fields.of[PF1] = field_at(kPlayfield, 4, 8, 0) | kFieldMirrored;
  fields.of[PF2] = field_at(kPlayfield, 12, 8, 0);
  fields.of[ENAM0] = field_at(kEnam, 0, 1, 1);
  fields.of[ENAM1] = field_at(kEnam + 1, 0, 1, 1);
  fields.of[ENABL] = field_at(offsetof(TiaState, enabl), 0, 1, 1);
  for (uint32_t object = 0; object < 5; ++object) {
    fields.of[HMP0 + object] = field_at(kMotion, 4 * object, 4, 4);
  }
  fields.of[VDELP0] = field_at(kVdelp, 0, 1, 0);
  fields.of[VDELP1] = field_at(kVdelp + 1, 0, 1, 0);
  fields.of[VDELBL] = field_at(offsetof(TiaState, vdelbl), 0, 1, 0);
  return fields;
}
constexpr uint64_t registers_with_fields() {
  constexpr Fields kFields = fields_of_registers();
  uint64_t registers = 0;
  for (uint32_t reg = 0; reg <= tia_write::VDELBL; ++reg) {
    registers |= uint64_t{kFields.of[reg] != 0} << reg;
  }
  return registers;
}
constexpr uint64_t kWithField = registers_with_fields();

// Sets the field of `reg`, one of kWithField. Returns whether that changes it.
CULE_INLINE bool set_field(TiaState& tia, uint32_t reg, uint32_t value) {
  static constexpr Fields kFields = fields_of_registers();
  const uint32_t field = kFields.of[reg];
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
