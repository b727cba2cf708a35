// All objects' bits along one scanline, worked out again only for those that changed.
#pragma once

#include "tia/collision.h"
#include "tia/draw.h"

namespace cule {

struct LineCache {
  using Word = uint64_t;
  static constexpr int kBits = 64;
  static constexpr int kWords = (kLinePixels + kBits - 1) / kBits;

  Word bits[kNumTiaObjects][kWords];
  uint32_t stale = kAllObjects;

  CULE_HD void refresh(const TiaState& tia) {
#pragma unroll
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      if (!(stale >> object & 1)) continue;
#pragma unroll
      for (int word = 0; word < kWords; ++word) bits[object][word] = object_word<Word>(tia, object, word * kBits);
    }
    stale = 0;
  }

  // The pixels of [begin, end) that fall into `word`; the others are zero.
  CULE_HD LineWord<Word> piece(int word, int begin, int end) const {
    const int low = begin - word * kBits, high = end - word * kBits;
    Word mask = low <= 0 ? ~Word{0} : ~Word{0} << low;
    if (high < kBits) mask &= (Word{1} << high) - 1;
    LineWord<Word> line;
#pragma unroll
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) line.bits[object] = bits[object][word] & mask;
    return line;
  }
};

// A view that latches collisions and shows nothing.
struct CollisionView {
  static constexpr bool kDraws = true;
  LineCache cache;

  CULE_INLINE void objects_changed(uint32_t objects) { cache.stale |= objects; }
  CULE_INLINE void dark(const TiaState&, int, int, int) {}
  CULE_INLINE void comb(const TiaState&, int, int) {}
  CULE_INLINE void grey_out(const TiaState&, int) {}
  CULE_HD void span(TiaState& tia, int, int begin, int end) {
    const uint32_t on = objects_on(tia);
    if ((on & (on - 1)) == 0 || tia.collisions == kAllCollisions) return;  // it takes two
    if (cache.stale) cache.refresh(tia);
#pragma unroll
    for (int word = 0; word < LineCache::kWords; ++word) {
      if (begin >= (word + 1) * LineCache::kBits || end <= word * LineCache::kBits) continue;
      tia.collisions |= static_cast<uint16_t>(find_collisions(cache.piece(word, begin, end)));
    }
  }
};

// A view that only keeps the state moving.
struct BlindView {
  static constexpr bool kDraws = false;
  CULE_INLINE void objects_changed(uint32_t) {}
  CULE_INLINE void dark(const TiaState&, int, int, int) {}
  CULE_INLINE void comb(const TiaState&, int, int) {}
  CULE_INLINE void grey_out(const TiaState&, int) {}
  CULE_INLINE void span(TiaState&, int, int, int) {}
};

}  // namespace cule
