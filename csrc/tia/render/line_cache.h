// The bits of all objects along one scanline. They are computed again only for objects that have
// changed, from the pixel on at which the change shows.
//
// objects.h models what the objects show, and has the source. This cache only saves work.
#pragma once

#include "tia/chip/objects.h"

namespace cule {

// The memory that a thread has for the words of all objects along a line. The thread's words are
// `stride` words apart, as threads may share a memory in which their words alternate.
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
  uint32_t stale = kAllObjects;  // the objects whose `bits` are out of date from the beam on
  uint32_t mixed = 0;  // the objects that changed within the scanline: their bits before differ
  uint32_t changed = kAllObjects;  // those whose bits changed since the caller set this to 0
  uint32_t filled = 0;             // those that have any bits

  CULE_INLINE void objects_changed(uint32_t objects) { stale |= objects; }

  // Begins a scanline. An object that changed within the last one looks the same all along this
  // one, so its bits must be computed again.
  CULE_INLINE void begin_line() {
    stale |= mixed;
    mixed = 0;
  }

  // Computes the bits of stale objects, from pixel `begin` on. In a loop, so that a GPU has little
  // code to fetch.
  CULE_INLINE void refresh(const TiaState& tia, int begin) {
    uint32_t wanted = stale;
    stale = 0;
    if (wanted == 0) return;
    if (begin > 0) mixed |= wanted;
    Word from_begin[kWords], now[kWords];
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const int at = begin - word * kBits;
      from_begin[word] = at <= 0 ? ~Word{0} : at < kBits ? ~Word{0} << at : 0;
    }
    if (wanted & 1u << kPlayfield) {
      const uint64_t line = playfield_line(tia);
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        now[word] = playfield_word<Word>(line, word * kBits);
      }
      keep(kPlayfield, now, from_begin);
    }
    wanted &= ~(1u << kPlayfield);
#pragma unroll 1
    for (uint32_t object = 0; wanted; ++object, wanted >>= 1) {
      if (!(wanted & 1)) continue;
      find_movable(tia, object, now);
      keep(object, now, from_begin);
    }
  }

  // The bits in `word` of pixels [begin, end). All other bits are zero.
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
  // Takes an object's new bits from `now` where `from_begin` has bits. Notes whether they differ.
  CULE_INLINE void keep(uint32_t object, const Word* now, const Word* from_begin) {
    Word changes = 0, any = 0;
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      Word& out = bits.at(object, word);
      const Word change = (out ^ now[word]) & from_begin[word];
      out ^= change;
      changes |= change;
      any |= out;
    }
    const uint32_t bit = 1u << object;
    if (changes != 0) changed |= bit;
    filled = any != 0 ? filled | bit : filled & ~bit;
  }

  // The words of a movable object. To keep them in registers, each copy is compared with each word.
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
      // What passes the line's right end continues at the left.
      now[0] |= start + width > kLinePixels ? pattern >> (kLinePixels - start) : 0;
    });
  }
};

}  // namespace cule
