// A view that latches collisions and shows nothing, for frames that nobody sees.
//
// Most objects are nowhere near another. So a scanline is looked at in blocks of 8 pixels: `blocks` has a bit for each that an object
// may reach into, which takes little to work out, and only where two objects are in the same block are their pixels compared.
#pragma once

#include "tia/collision.h"
#include "tia/draw.h"

namespace cule {

constexpr int kBlockPixels = 8;
constexpr int kLineBlocks = kLinePixels / kBlockPixels;

CULE_INLINE uint32_t block_of(int pixel) { return static_cast<uint32_t>(pixel) / kBlockPixels; }

// The blocks that pixels [begin, end) touch; `end` may be beyond the line.
CULE_INLINE uint32_t blocks_between(int begin, int end) { return (2u << block_of(end - 1)) - (1u << block_of(begin)); }

// The blocks that a playfield touches whose right half is the left one again, or that mirrored, or, where nobody knows, both.
CULE_INLINE uint32_t playfield_blocks(uint32_t playfield, bool repeated, bool mirrored) {
  // The left half: its 20 bits in pairs, and of each pair one bit.
  uint32_t half = (playfield | playfield >> 1) & 0x55555;
  half = (half | half >> 1) & 0x33333;
  half = (half | half >> 2) & 0xF0F0F;
  half = (half | half >> 4) & 0xF00FF;
  half = (half | half >> 8) & 0x003FF;
  const uint32_t right = reverse_byte(half & 0xFF) << 2 | (half >> 7 & 2) | half >> 9;
  return half | ((repeated ? half : 0) | (mirrored ? right : 0)) << kLineBlocks / 2;
}

// The blocks that a movable object touches with all its copies.
CULE_INLINE uint32_t movable_blocks(const Extent& extent) {
  if (extent.width == 0) return 0;
  const uint32_t one = blocks_between(extent.position, extent.position + static_cast<int>(extent.width));
  const uint32_t second = extent.distances & 0x0F, third = extent.distances >> 4;
  uint32_t blocks = extent.skip_first ? 0 : one;
  if (second) blocks |= one << second * 16 / kBlockPixels;
  if (third) blocks |= one << third * 16 / kBlockPixels;
  return (blocks | blocks >> kLineBlocks) & ((1u << kLineBlocks) - 1);
}

// The lowest of the movable objects in `objects`.
CULE_INLINE uint32_t lowest_object(uint32_t objects) {
  const uint32_t lowest = objects & (0u - objects);
  return (lowest >> 1) - (lowest >> 3) - (lowest >> 3 & 2);  // of 1, 2, 4, 8 and 16: 0 to 4
}

// The blocks that both objects of one of `latches` are in.
CULE_INLINE uint32_t common_blocks(const uint32_t (&blocks)[kNumTiaObjects], uint32_t latches) {
  constexpr uint64_t kFirst = latch_objects(false), kSecond = latch_objects(true);
  uint32_t of[kNumTiaObjects], common = 0;
#pragma unroll
  for (uint32_t object = 0; object < kNumTiaObjects; ++object) of[object] = blocks[object];
#pragma unroll
  for (uint32_t latch = 0; latch < kNumLatches; ++latch) {
    if (latches >> latch & 1) common |= of[kFirst >> 3 * latch & 7] & of[kSecond >> 3 * latch & 7];
  }
  return common;
}

constexpr uint32_t kMovableObjects = kAllObjects & ~(1u << kPlayfield);

// With nothing wanted it only keeps the state moving.
struct CollisionView {
  static constexpr bool kSeesColors = false;
  uint32_t wanted = kAllCollisions;  // the latches that somebody will look at
  uint32_t open = kNotKnown;         // those of them that are not set yet, as of the last look
  uint32_t watched = 0;              // the objects that these have to do with
  uint32_t changed = kAllObjects;    // objects that have changed since the last update
  uint32_t stale = 0;                // those that had before that, but their `blocks` were of no interest
  uint32_t crossing = 0;             // blocks in which an open latch may be set, and which have not been looked at since a change
  uint32_t blocks[kNumTiaObjects] = {};

  CULE_INLINE void objects_changed(uint32_t objects) { changed |= objects; }
  CULE_INLINE void grey_out(const TiaState&, int) {}
  CULE_INLINE void collisions_cleared() {}
  CULE_INLINE void flush(const TiaState&) {}

  CULE_INLINE void show(TiaState& tia, int, int begin, int end) {
    if (wanted && !(tia.vblank & 2)) look(tia, begin, end);
  }

 private:
  static constexpr uint32_t kNotKnown = ~0u;  // no latches
  using Word = LineBits;
  static constexpr int kBits = static_cast<int>(sizeof(Word) * 8);

  CULE_INLINE void look(TiaState& tia, int begin, int end) {
    const uint32_t now_open = wanted & ~tia.collisions;
    if (now_open != open || (changed & watched)) update(tia, now_open);
    if (crossing == 0) return;
    const uint32_t here = crossing & blocks_between(begin, end);
    if (here == 0) return;
    const uint32_t found = find(tia, here, begin, end);
    tia.collisions |= static_cast<uint16_t>(found);
    const uint32_t first_whole = block_of(begin + kBlockPixels - 1), end_whole = block_of(end);
    if (first_whole < end_whole) crossing &= ~((1u << end_whole) - (1u << first_whole));
    // A latch that is cleared before the next look would seem to have been open all the time.
    if (found) open = kNotKnown;
  }

  // Works out `crossing`, and what it takes.
  CULE_INLINE void update(const TiaState& tia, uint32_t now_open) {
    if (now_open != open) {
      open = now_open;
      watched = objects_of_latches(open);
    }
    stale |= changed;
    changed = crossing = 0;
    const uint32_t on = objects_on(tia);
    const uint32_t possible = open & possible_latches(on);
    if (possible == 0) return;
    const uint32_t seen = on & watched;
    uint32_t left = stale & seen;
    stale &= ~seen;
    if (left & 1u << kPlayfield) blocks[kPlayfield] = playfield_blocks(tia.playfield, !tia.reflect_now, tia.reflect_now);
    // In a loop, so that a GPU has little code to fetch, and each of its threads can have another object.
#pragma unroll 1
    for (left &= kMovableObjects; left; left &= left - 1) {
      const uint32_t object = lowest_object(left);
      blocks[object] = movable_blocks(extent_of(tia, object));
    }
    crossing = common_blocks(blocks, possible);
  }

  // Those of the open latches that pixels [begin, end) set, which may be set in the blocks `here` only.
  CULE_INLINE uint32_t find(const TiaState& tia, uint32_t here, int begin, int end) const {
    uint32_t found = 0;
#pragma unroll 1
    for (int first = begin & -kBits; first < end; first += kBits) {
      const uint32_t in_word = here & blocks_between(first, first + kBits);
      if (in_word == 0) continue;
      uint32_t near = 0;
      LineWord<Word> line;
#pragma unroll
      for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
        near |= static_cast<uint32_t>((blocks[object] & in_word) != 0) << object;
        line.bits[object] = 0;
      }
      const Word pixels = pixels_in_word<Word>(first, begin, end);
      near &= watched;
      if (near & 1u << kPlayfield) line.bits[kPlayfield] = playfield_word<Word>(playfield_line(tia), first) & pixels;
#pragma unroll 1
      for (near &= kMovableObjects; near; near &= near - 1) {
        const uint32_t object = lowest_object(near);
        line.bits[object] = movable_word<Word>(tia, object, first) & pixels;
      }
      found |= find_collisions(line);
    }
    return found & open;
  }
};

}  // namespace cule
