// Which objects may have met for a while, by all that was seen of them (tia/sightings.h): the
// pixels of each, those of all its places together.
#pragma once

#include "tia/sightings.h"

namespace cule {

// The pixels of a scanline.
struct LinePixels {
  static constexpr int kWords = kLinePixels / 32;
  uint32_t words[kWords] = {};

  // `pattern` from pixel `start` on, past the line's right end from its left one.
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

  // A movable object at `place`, as packed_place has it, each copy with `pattern`. The first copy
  // may not have shown (TiaState::skip_first), but counts.
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

// What a movable object may have shown of one copy that is `width` wide.
CULE_INLINE uint32_t pattern_seen(const TiaState& tia, const Sightings& seen, uint32_t object,
                                  uint32_t width) {
  if (object > kPlayer1) return (1u << width) - 1;
  const uint32_t graphics = seen.shapes >> 8 * object & 0xFF;
  const uint32_t turned = seen.shapes & Sightings::kTurned << object ? ~0u : 0;
  const uint32_t reflected = tia.refp[object] ? ~0u : 0;
  return widened((graphics & (reflected | turned)) |
                     (reverse_byte(graphics) & (~reflected | turned)),
                 width);
}

// Those of `latches` that may have been set since `left` and `seen` began; all others have not.
// `tia` is the state now.
CULE_INLINE uint32_t latches_in_reach(const TiaState& tia, const PlacesLeft& left,
                                      const Sightings& seen, uint32_t latches) {
  constexpr uint64_t kFirst = latch_objects(false), kSecond = latch_objects(true);
  if (!left.knows_all() || has_stars(tia)) return latches;
  LinePixels shown[kNumTiaObjects];
#pragma unroll 1
  for (uint32_t objects = objects_of_latches(latches); objects; objects &= objects - 1) {
    const uint32_t object = static_cast<uint32_t>(count_bits((objects & (0u - objects)) - 1));
    LinePixels pixels;
    if (object == kPlayfield) {
      const uint32_t half = seen.playfield & Sightings::kPlayfieldBits;
      const uint32_t right = (seen.playfield & Sightings::kRepeated ? half : 0) |
                             (seen.playfield & Sightings::kMirrored ? reverse_playfield(half) : 0);
      pixels.add_playfield(half | uint64_t{right} << 20);
    } else {
      // Where it is, and where it has been.
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
    const uint32_t latch = open & (0u - open);
    const int at = 3 * count_bits(latch - 1);
    if (shown[kFirst >> at & 7].meets(shown[kSecond >> at & 7])) found |= latch;
  }
  return found;
}

}  // namespace cule
