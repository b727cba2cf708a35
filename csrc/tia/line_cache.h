// All objects' bits along one scanline, worked out again only for those that changed, from where on
// they show it.
#pragma once

#include "tia/objects.h"

namespace cule {

// A line's words, of pixels, and where a thread has room for those of all objects: word after word,
// or, where threads side by side have theirs in the same memory, each `stride` words further.
template <class WordType>
struct LineRoom {
  using Word = WordType;
  static constexpr int kBits = static_cast<int>(sizeof(Word) * 8);
  static constexpr int kWords = (kLinePixels + kBits - 1) / kBits;
  static constexpr int kSize = kWords * static_cast<int>(kNumTiaObjects);

  Word* words;
  int stride;

  CULE_INLINE Word& at(uint32_t object, int word) const {
    return words[(static_cast<int>(object) * kWords + word) * stride];
  }
};

template <class WordType>
struct LineCache {
  using Word = WordType;
  using Room = LineRoom<Word>;
  static constexpr int kBits = Room::kBits, kWords = Room::kWords;

  Room bits;
  uint32_t stale = kAllObjects;  // the objects that `bits` does not have right, as from the beam on
  uint32_t mixed = 0;     // those that have changed within the scanline, and are other ones before
  bool differs = true;    // whether any of `bits` has changed since somebody set this to false

  CULE_INLINE void objects_changed(uint32_t objects) { stale |= objects; }

  // What is in the middle of a scanline is one thing all along the next.
  CULE_INLINE void begin_line() {
    stale |= mixed;
    mixed = 0;
  }

  // Works out those that are not right, from pixel `begin` on. In a loop, so that a GPU has little
  // code to fetch.
  CULE_INLINE void refresh(const TiaState& tia, int begin) {
    uint32_t wanted = stale;
    stale = 0;
    if (wanted == 0) return;
    if (begin > 0) mixed |= wanted;
    Word behind[kWords], now[kWords];
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const int at = begin - word * kBits;
      behind[word] = at <= 0 ? ~Word{0} : at < kBits ? ~Word{0} << at : 0;
    }
    if (wanted & 1u << kPlayfield) {
      const uint64_t line = playfield_line(tia);
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        now[word] = playfield_word<Word>(line, word * kBits);
      }
      keep(kPlayfield, now, behind);
    }
    wanted &= ~(1u << kPlayfield);
#pragma unroll 1
    for (uint32_t object = 0; wanted; ++object, wanted >>= 1) {
      if (!(wanted & 1)) continue;
      find_movable(tia, object, now);
      keep(object, now, behind);
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
  // Has an object's new words where `behind` has bits, and notes whether they are other ones.
  CULE_INLINE void keep(uint32_t object, const Word* now, const Word* behind) {
    Word changed = 0;
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      Word& out = bits.at(object, word);
      const Word change = (out ^ now[word]) & behind[word];
      out ^= change;
      changed |= change;
    }
    differs |= changed != 0;
  }

  // The words of a movable object, in registers: which ones a copy is in is asked of each.
  static CULE_INLINE void find_movable(const TiaState& tia, uint32_t object, Word* now) {
#pragma unroll
    for (int word = 0; word < kWords; ++word) now[word] = 0;
    for_each_copy(tia, object, [&](uint32_t pattern, int width, int start) CULE_INLINE_LAMBDA {
      const int in_word = start / kBits, at = start % kBits;
      const Word low = static_cast<Word>(pattern) << at;
      const Word high = at + width > kBits ? pattern >> (kBits - at) : 0;
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        now[word] |= word == in_word ? low : word == in_word + 1 ? high : 0;
      }
      // What leaves the line at the right enters it at the left.
      now[0] |= start + width > kLinePixels ? pattern >> (kLinePixels - start) : 0;
    });
  }
};

}  // namespace cule
