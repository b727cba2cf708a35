// The 15 collision latches, as bits of a word. They are in the order in which CXM0P to CXPPMM show
// them: bit 2i is bit 7 of read register i, bit 2i + 1 its bit 6. CXBLPF has only one latch, so
// those of CXPPMM are bits 13 and 14.
//
// Source: Stella Programmer's Guide, "TIA read address summary".
#pragma once

#include "tia/chip/objects.h"

namespace cule {

constexpr uint32_t kAllCollisions = 0x7FFF;
constexpr uint32_t kNumLatches = 15;

// The first or the second object of each latch: three bits for each latch, from latch 0 up.
constexpr uint64_t latch_objects(bool second) {
  constexpr uint32_t kPairs[kNumLatches][2] = {
      {kMissile0, kPlayer1},  {kMissile0, kPlayer0},   {kMissile1, kPlayer0},
      {kMissile1, kPlayer1},  {kPlayer0, kPlayfield},  {kPlayer0, kBall},
      {kPlayer1, kPlayfield}, {kPlayer1, kBall},       {kMissile0, kPlayfield},
      {kMissile0, kBall},     {kMissile1, kPlayfield}, {kMissile1, kBall},
      {kBall, kPlayfield},    {kPlayer0, kPlayer1},    {kMissile0, kMissile1}};
  uint64_t packed = 0;
  for (uint32_t latch = 0; latch < kNumLatches; ++latch)
    packed |= uint64_t{kPairs[latch][second]} << 3 * latch;
  return packed;
}

// For each object, the latches that it can set.
struct ObjectLatches {
  uint32_t of[kNumTiaObjects];
};
constexpr ObjectLatches latches_of_objects() {
  ObjectLatches latches{};
  for (uint32_t latch = 0; latch < kNumLatches; ++latch) {
    latches.of[latch_objects(false) >> 3 * latch & 7] |= 1u << latch;
    latches.of[latch_objects(true) >> 3 * latch & 7] |= 1u << latch;
  }
  return latches;
}

// The latches whose objects are both switched on. `on` has a bit for each TiaObject.
CULE_INLINE uint32_t possible_latches(uint32_t on) {
  constexpr ObjectLatches kLatches = latches_of_objects();
  uint32_t impossible = 0;
#pragma unroll
  for (uint32_t object = 0; object < kNumTiaObjects; ++object)
    impossible |= on >> object & 1 ? 0 : kLatches.of[object];
  return kAllCollisions & ~impossible;
}

// The lowest of some objects.
CULE_INLINE uint32_t lowest_object(uint32_t objects) {
  return static_cast<uint32_t>(first_bit(objects));
}

// The objects that can set `latches`, with a bit for each.
CULE_INLINE uint32_t objects_of_latches(uint32_t latches) {
  constexpr ObjectLatches kLatches = latches_of_objects();
  uint32_t objects = 0;
#pragma unroll
  for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
    objects |= static_cast<uint32_t>((latches & kLatches.of[object]) != 0) << object;
  }
  return objects;
}

// The latches that collision register `reg` (CXM0P to CXPPMM) shows.
constexpr CULE_INLINE uint32_t latches_of_register(uint32_t reg) {
  return reg == tia_read::CXBLPF ? 1u << 12 : reg == tia_read::CXPPMM ? 3u << 13 : 3u << 2 * reg;
}

// The latches that the pixels in `line` set. Computes one byte of latches at a time (CULE_OPAQUE).
template <class Word>
CULE_INLINE uint32_t find_collisions(const LineWord<Word>& line) {
  const Word p0 = line.bits[kPlayer0], p1 = line.bits[kPlayer1], m0 = line.bits[kMissile0],
             m1 = line.bits[kMissile1];
  const Word bl = line.bits[kBall], pf = line.bits[kPlayfield];
  uint32_t low = ((m0 & p1) != 0) << 0 | ((m0 & p0) != 0) << 1 | ((m1 & p0) != 0) << 2 |
                 ((m1 & p1) != 0) << 3 | ((p0 & pf) != 0) << 4 | ((p0 & bl) != 0) << 5 |
                 ((p1 & pf) != 0) << 6 | ((p1 & bl) != 0) << 7;
  uint32_t high = ((m0 & pf) != 0) << 0 | ((m0 & bl) != 0) << 1 | ((m1 & pf) != 0) << 2 |
                  ((m1 & bl) != 0) << 3 | ((bl & pf) != 0) << 4 | ((p0 & p1) != 0) << 5 |
                  ((m0 & m1) != 0) << 6;
  CULE_OPAQUE(low);
  CULE_OPAQUE(high);
  return low | high << 8;
}

// Bits 7 and 6 of a collision register (CXM0P to CXPPMM).
constexpr CULE_INLINE uint32_t collision_register(uint32_t collisions, uint32_t reg) {
  const uint32_t pair = reg == tia_read::CXBLPF   ? collisions >> 12 & 1
                        : reg == tia_read::CXPPMM ? collisions >> 13 & 3
                                                  : collisions >> 2 * reg & 3;
  return (pair & 1) << 7 | (pair & 2) << 5;
}

constexpr bool registers_show_their_latches() {
  for (uint32_t reg = tia_read::CXM0P; reg <= tia_read::CXPPMM; ++reg) {
    for (uint32_t latch = 0; latch < kNumLatches; ++latch) {
      if ((collision_register(1u << latch, reg) != 0) != (latches_of_register(reg) >> latch & 1))
        return false;
    }
  }
  return true;
}
static_assert(registers_show_their_latches(),
              "expected latches_of_register and collision_register to agree");

}  // namespace cule
