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
  uint32_t stale = (1u << kNumTiaObjects) - 1;  // the objects that `bits` does not have right

  CULE_INLINE void objects_changed(uint32_t objects) { stale |= objects; }

  // Works out those that are not right. In a loop, so that a GPU has little code to fetch.
  CULE_INLINE void refresh(const TiaState& tia) {
    uint32_t wanted = stale;
    stale = 0;
    if (wanted & 1u << kPlayfield) {
      const uint64_t line = playfield_line(tia);
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        bits.at(kPlayfield, word) = playfield_word<Word>(line, word * kBits);
      }
    }
    wanted &= ~(1u << kPlayfield);
#pragma unroll 1
    for (uint32_t object = 0; wanted; ++object, wanted >>= 1) {
      if (wanted & 1) refresh_movable(tia, object);
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

 private:
  CULE_INLINE void refresh_movable(const TiaState& tia, uint32_t object) {
#pragma unroll
    for (int word = 0; word < kWords; ++word) bits.at(object, word) = 0;
    for_each_copy(tia, object, [&](uint32_t pattern, int width, int start) CULE_INLINE_LAMBDA {
      const int word = start / kBits, at = start % kBits;
      bits.at(object, word) |= static_cast<Word>(pattern) << at;
      if (at + width > kBits && word + 1 < kWords) {
        bits.at(object, word + 1) |= pattern >> (kBits - at);
      }
      // What leaves the line at the right enters it at the left.
      if (start + width > kLinePixels) bits.at(object, 0) |= pattern >> (kLinePixels - start);
    });
  }
};

}  // namespace cule
