// Which collision latches may have been set since some moment. For each object this takes all
// pixels that the object may have shown in all its places (tia/collisions/bounds.h). Two objects
// with no common pixel cannot have collided.
//
// The chip compares objects pixel by pixel. This is only a quick check before such a search
// (search.h).
#pragma once

#include "tia/collisions/bounds.h"

namespace cule {

// A set of pixels of a scanline.
struct LinePixels {
  static constexpr int kWords = kLinePixels / 32;
  uint32_t words[kWords] = {};

  // Adds `pattern` from pixel `start` on. What passes the line's right end continues at the left.
  CULE_INLINE void add(uint32_t pattern, int start) {
    static_assert(kLinePixels % 32 == 0);
    const uint64_t two = uint64_t{pattern} << (start & 31);
    const int first = start >> 5, second = first + 1 < kWords ? first + 1 : 0;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      words[i] |= (i == first ? static_cast<uint32_t>(two) : 0) |
                  (i == second ? static_cast<uint32_t>(two >> 32) : 0);
    }
  }

  // Adds a movable object at `place` (packed_place). Each copy shows `pattern`. The first copy
  // counts, even if it did not show (TiaState::skip_first).
  CULE_INLINE void add_movable(uint32_t place, uint32_t pattern) {
    const Extent extent{static_cast<int>(place >> 8 & 0xFF), place >> 16 & 0xFF, place >> 24,
                        false};
    for_each_start(extent, [&](int start) CULE_INLINE_LAMBDA { add(pattern, start); });
  }

  CULE_INLINE void add_playfield(uint64_t line) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] |= playfield_word<uint32_t>(line, 32 * i);
  }

  CULE_INLINE bool meets(const LinePixels& other) const {
    uint32_t common = 0;
#pragma unroll
    for (int i = 0; i < kWords; ++i) common |= words[i] & other.words[i];
    return common != 0;
  }
};

// All pixels that one copy of a movable object may have shown, if the copy is `width` wide.
CULE_INLINE uint32_t pattern_seen(const TiaState& tia, const ShownBounds& seen, uint32_t object,
                                  uint32_t width) {
  if (object > kPlayer1) return (1u << width) - 1;
  const uint32_t graphics = seen.shapes >> 8 * object & 0xFF;
  const uint32_t turned = seen.shapes & ShownBounds::kTurned << object ? ~0u : 0;
  const uint32_t reflected = tia.refp[object] ? ~0u : 0;
  return widened((graphics & (reflected | turned)) |
                     (reverse_byte(graphics) & (~reflected | turned)),
                 width);
}

// The latches among `latches` that may have been set since `left` and `seen` began. The rest have
// certainly not been set. `tia` is the current state.
CULE_INLINE uint32_t latches_within_bounds(const TiaState& tia, const PlacesLeft& left,
                                      const ShownBounds& seen, uint32_t latches) {
  constexpr uint64_t kFirst = latch_objects(false), kSecond = latch_objects(true);
  if (!left.knows_all() || has_stars(tia)) return latches;
  LinePixels shown[kNumTiaObjects];
#pragma unroll 1
  for (uint32_t objects = objects_of_latches(latches); objects; objects &= objects - 1) {
    const uint32_t object = lowest_object(objects);
    LinePixels pixels;
    if (object == kPlayfield) {
      const uint32_t half = seen.playfield & ShownBounds::kPlayfieldBits;
      const uint32_t mirrored = reverse_playfield(half);
      const uint32_t right = (seen.playfield & ShownBounds::kRepeated ? half : 0) |
                             (seen.playfield & ShownBounds::kMirrored ? mirrored : 0);
      pixels.add_playfield(half | uint64_t{right} << 20);
    } else {
      // Adds the place where the object is, and the places that it has left.
      uint32_t place = packed_place(tia, object), pattern = 0, width = 0;
#pragma unroll 1
      for (uint32_t i = 0;; ++i) {
        if ((place & 7) == object) {
          if (width != (place >> 16 & 0xFF)) {
            width = place >> 16 & 0xFF;
            pattern = pattern_seen(tia, seen, object, width);
          }
          pixels.add_movable(place, pattern);
        }
        if (i == left.count) break;
        place = left.places[i];
      }
    }
    shown[object] = pixels;
  }
  uint32_t found = 0;
#pragma unroll 1
  for (uint32_t open = latches; open; open &= open - 1) {
    const int latch = first_bit(open), at = 3 * latch;
    const bool meet = shown[kFirst >> at & 7].meets(shown[kSecond >> at & 7]);
    found |= static_cast<uint32_t>(meet) << latch;
  }
  return found;
}

}  // namespace cule
