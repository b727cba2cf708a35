// All objects' bits along one scanline, worked out again only for those that changed.
#pragma once

#include "tia/objects.h"

namespace cule {

// A line's words, of pixels, and where a thread has room for those of all objects and for sixteen
// painted pixels: word after word, or, where threads side by side have theirs in the same memory,
// each `stride` words further.
template <class WordType>
struct LineRoom {
  using Word = WordType;
  static constexpr int kBits = static_cast<int>(sizeof(Word) * 8);
  static constexpr int kWords = (kLinePixels + kBits - 1) / kBits;
  static constexpr int kObjectWords = kWords * static_cast<int>(kNumTiaObjects);
  static constexpr int kChunk = 16, kParts = kChunk / static_cast<int>(sizeof(Word));
  static constexpr int kSize = kObjectWords + kParts;

  Word* words;
  int stride;

  CULE_INLINE Word& at(uint32_t object, int word) const {
    return words[(static_cast<int>(object) * kWords + word) * stride];
  }
  CULE_INLINE Word& painted(int part) const { return words[(kObjectWords + part) * stride]; }
};

template <class WordType>
struct LineCache {
  using Word = WordType;
  using Room = LineRoom<Word>;
  static constexpr int kBits = Room::kBits, kWords = Room::kWords;

  Room bits;
  uint32_t ready = 0;  // bit word * 6 + object: whether `bits` has it right
  static_assert(Room::kObjectWords <= 32, "a bit for each word of each object");

  CULE_INLINE void objects_changed(uint32_t objects) {
    constexpr uint32_t kEachWord = 0x01041041;  // bits 0, 6, 12, 18 and 24
    ready &= ~(objects * kEachWord);
  }

  // Works out those of `objects` that are not right in `word`. In a loop, so that a GPU has little
  // code to fetch.
  CULE_INLINE void refresh(const TiaState& tia, uint32_t objects, int word) {
    const uint32_t shift = static_cast<uint32_t>(word) * kNumTiaObjects;
    uint32_t wanted = objects & ~(ready >> shift);
    ready |= wanted << shift;
    if (wanted & 1u << kPlayfield) {
      bits.at(kPlayfield, word) = playfield_word<Word>(playfield_line(tia), word * kBits);
    }
    wanted &= ~(1u << kPlayfield);
#pragma unroll 1
    for (uint32_t object = 0; wanted; ++object, wanted >>= 1) {
      if (wanted & 1) bits.at(object, word) = movable_word<Word>(tia, object, word * kBits);
    }
  }

  // The pixels of [begin, end) that fall into `word`; the others are zero.
  CULE_INLINE LineWord<Word> piece(int word, int begin, int end) const {
    const Word mask = pixels_in_word<Word>(word * kBits, begin, end);
    LineWord<Word> line;
#pragma unroll
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      line.bits[object] = bits.at(object, word) & mask;
    }
    return line;
  }
};

}  // namespace cule
