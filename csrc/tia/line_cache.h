// All objects' bits along one scanline, worked out again only for those that changed.
#pragma once

#include "tia/collision.h"
#include "tia/draw.h"

namespace cule {

template <class WordType>
struct LineCache {
  using Word = WordType;
  static constexpr int kBits = static_cast<int>(sizeof(Word) * 8);
  static constexpr int kWords = (kLinePixels + kBits - 1) / kBits;

  Word bits[kNumTiaObjects][kWords] = {};
  uint32_t ready = 0;  // bit word * 6 + object: whether `bits` has it right
  static_assert(kWords * kNumTiaObjects <= 32, "a bit for each word of each object");

  CULE_INLINE void objects_changed(uint32_t objects) {
    constexpr uint32_t kEachWord = 0x01041041;  // bits 0, 6, 12, 18 and 24
    ready &= ~(objects * kEachWord);
  }

  // Works out those of `objects` that are not right in `word`. In a loop, so that a GPU has little code to fetch.
  CULE_INLINE void refresh(const TiaState& tia, uint32_t objects, int word) {
    const uint32_t shift = static_cast<uint32_t>(word) * kNumTiaObjects;
    uint32_t wanted = objects & ~(ready >> shift);
    ready |= wanted << shift;
#pragma unroll 1
    for (uint32_t object = 0; wanted; ++object, wanted >>= 1) {
      if (!(wanted & 1)) continue;
      const int first = word * kBits;
      bits[object][word] = object == kPlayfield ? playfield_word<Word>(playfield_line(tia), first)
                                                : place_shape<Word>(shape_of(tia, object), first);
    }
  }

  // The bits of [begin, end) in `word`.
  static CULE_INLINE Word pixels(int word, int begin, int end) {
    const int low = begin - word * kBits, high = end - word * kBits;
    const Word mask = low <= 0 ? ~Word{0} : ~Word{0} << low;
    return high < kBits ? mask & ((Word{1} << high) - 1) : mask;
  }

  // The pixels of [begin, end) that fall into `word`; the others are zero.
  CULE_INLINE LineWord<Word> piece(int word, int begin, int end) const {
    const Word mask = pixels(word, begin, end);
    LineWord<Word> line;
#pragma unroll
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) line.bits[object] = bits[object][word] & mask;
    return line;
  }
};

// A view that latches collisions and shows nothing. With nothing wanted it only keeps the state moving.
struct CollisionView {
  static constexpr bool kSeesColors = false;
  uint32_t wanted = kAllCollisions;  // the latches that somebody will look at
  uint32_t possible = 0;             // those between objects that are switched on
  bool changed = true;               // since `possible` was worked out
  int seen_begin = 0, seen_end = 0;  // pixels of which all is known, until something changes
  using Cache = LineCache<LineBits>;
  Cache cache;

  CULE_INLINE void objects_changed(uint32_t objects) {
    cache.objects_changed(objects);
    changed = true;
  }
  CULE_INLINE void grey_out(const TiaState&, int) {}

  CULE_INLINE void show(TiaState& tia, int, int begin, int end) {
    if (wanted && !(tia.vblank & 2)) look(tia, begin, end);
  }

 private:
  CULE_INLINE void look(TiaState& tia, int begin, int end) {
    if (changed) {
      possible = possible_latches(objects_on(tia));
      changed = false;
      seen_begin = seen_end = 0;
    }
    const uint32_t open = wanted & possible & ~tia.collisions;
    if (open == 0 || (begin >= seen_begin && end <= seen_end)) return;
    tia.collisions |= static_cast<uint16_t>(find(tia, open, begin, end));
    const bool joins = begin <= seen_end && end >= seen_begin;
    seen_begin = joins && seen_begin < begin ? seen_begin : begin;
    seen_end = joins && seen_end > end ? seen_end : end;
  }

  // Those of the `open` latches that pixels [begin, end) set.
  CULE_INLINE uint32_t find(const TiaState& tia, uint32_t open, int begin, int end) {
    uint32_t found = 0;
    const uint32_t objects = objects_of_latches(open);
#pragma unroll 1
    for (int word = begin / Cache::kBits; word * Cache::kBits < end; ++word) {
      cache.refresh(tia, objects, word);
      found |= find_collisions(cache.piece(word, begin, end));
    }
    return found & open;  // the bits of other objects may be wrong
  }
};

}  // namespace cule
