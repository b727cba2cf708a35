// Finds runs of the TIA's objects.
//
// A run is a part of one scanline: pixels of one object and color, from the first to the last, with
// gaps shorter than the group's settings say. The pixels count whatever covers them, unless they
// have the background's color, the beam is off, or the comb of HMOVE hides them.
//
// Which pixels an object has is in objects.h, with its source. Runs are the project's own.
#pragma once

#include "tia/chip/beam.h"
#include "tia/chip/objects.h"
#include "tia/render/object_facts.h"

namespace cule {

// How a piece of a scanline looks, apart from its objects: the colors of player 0, player 1, the
// playfield and the background, from the lowest byte up; whether the beam is on; and the result of
// score_or_priority. If the beam is off, all is 0.
struct PieceLook {
  uint32_t colors;
  bool lit;
  uint32_t priority;

  CULE_INLINE bool operator==(const PieceLook& other) const {
    return colors == other.colors && lit == other.lit && priority == other.priority;
  }
  CULE_INLINE bool is_score() const { return priority & 2; }
  CULE_INLINE uint32_t background() const { return colors >> 24; }
  CULE_INLINE uint32_t color_of(uint32_t object) const {
    const int shift = object == kPlayer0 || object == kMissile0 ? 0 : object < kBall ? 8 : 16;
    return colors >> shift & 0xFF;
  }
};

// What a run looks like, in a word: from the lowest bit up its first pixel, the one after its last,
// its object, the object's class, and its color.
struct RunLooks {
  static constexpr int kObjectShift = 16, kClassShift = 19;
  static constexpr uint32_t kClassBits = 7u << kClassShift, kColorBits = 0xFFu << 24;
  uint32_t word;

  static CULE_INLINE RunLooks of(uint32_t object, int of_class, uint32_t color, int begin,
                                 int end) {
    return {static_cast<uint32_t>(begin) | static_cast<uint32_t>(end) << 8 |
            object << kObjectShift | static_cast<uint32_t>(of_class) << kClassShift | color << 24};
  }
  CULE_INLINE int begin() const { return static_cast<int>(word & 0xFF); }
  CULE_INLINE int end() const { return static_cast<int>(word >> 8 & 0xFF); }
  CULE_INLINE uint32_t object() const { return word >> kObjectShift & 7; }
  CULE_INLINE int of_class() const { return static_cast<int>(word >> kClassShift & 7); }
  CULE_INLINE uint32_t color() const { return word >> 24; }
  // Whether it touches another run, of a scanline that is near enough. They are equal in the bits
  // `same`.
  CULE_INLINE bool touches(RunLooks other, uint32_t same) const {
    return ((word ^ other.word) & same) == 0 && begin() <= other.end() && other.begin() <= end();
  }
};

// It is told of a frame's scanlines from top to bottom: of each with begin_line, and then of its
// pieces from left to right; or with repeat_line, if it is like the one above. It tells `Sink` of
// each scanline with begin_line, and then of its runs with add_run, or with repeat_object of an
// object with the same runs as above; or with repeat_line, but never of one above which boxes end.
template <class Sink>
class RunFinder {
 public:
  using Word = LineBits;
  static constexpr int kBits = static_cast<int>(sizeof(Word) * 8);

  CULE_INLINE RunFinder(const int16_t* settings, const Sink& sink)
      : settings_(settings), sink_(sink) {}

  // False: boxes end above it, so that it has to be told of with begin_line.
  CULE_INLINE bool repeat_line(int line) {
    if (is_cut(settings_, line)) return false;
    line_ = line;
    sink_.repeat_line(line);
    return true;
  }
  CULE_INLINE void begin_line(int line) {
    above_ = is_cut(settings_, line) ? kNoLine : line_;
    line_ = line;
    sink_.begin_line(line);
  }

  // Pixels [begin, end) of the scanline. `bits.at(object, word)` has the objects' bits, of which
  // those before `begin` may be of another piece. `filled` are the objects that have any, and
  // `changed` those whose bits may be others than at the last piece. HMOVE's comb begins at pixel
  // `comb_begin`.
  template <class LineObjectBits>
  CULE_INLINE void piece(int begin, int end, int comb_begin, const PieceLook& look, uint32_t filled,
                     uint32_t changed, const LineObjectBits& bits) {
    const bool whole = begin == 0 && end == kLinePixels;
    const bool comparable = whole && whole_ && look == look_ && comb_begin == comb_begin_ &&
                            line_ == above_ + 1;
    whole_ = whole;
    look_ = look;
    comb_begin_ = comb_begin;
    if (!look.lit) return;
#pragma unroll 1
    for (uint32_t object = 0; filled >> object; ++object) {
      if (!(filled >> object & 1)) continue;
      if (comparable && !(changed >> object & 1)) sink_.repeat_object(object);
      else find_runs(object, begin, end, look, bits);
    }
  }

  CULE_INLINE void finish() { sink_.finish(); }
  CULE_INLINE const Sink& sink() const { return sink_; }

 private:
  const int16_t* settings_;
  Sink sink_;
  int line_ = kNoLine, above_ = kNoLine;
  // The last piece: its look, whether it was a whole scanline, and its comb.
  PieceLook look_ = {};
  bool whole_ = false;
  int comb_begin_ = kCombPixels;

  template <class LineObjectBits>
  CULE_INLINE void find_runs(uint32_t object, int begin, int end, const PieceLook& look,
                             const LineObjectBits& bits) {
    constexpr int kHalf = kLinePixels / 2;
    const bool scored = object == kPlayfield && look.is_score();
    const uint32_t color = look.color_of(scored ? static_cast<uint32_t>(kPlayer0) : object),
                   right = scored ? look.color_of(kPlayer1) : color;
    if (color == right) {
      find_runs_of(object, color, look.background(), begin, end, bits);
      return;
    }
    find_runs_of(object, color, look.background(), begin, end < kHalf ? end : kHalf, bits);
    find_runs_of(object, right, look.background(), begin > kHalf ? begin : kHalf, end, bits);
  }

  // Finds an object's runs in pixels [begin, end).
  template <class LineObjectBits>
  CULE_INLINE void find_runs_of(uint32_t object, uint32_t color, uint32_t background, int begin,
                                int end, const LineObjectBits& line) {
    if (color == background || begin >= end) return;
    const int gap = gap_of(settings_, object);
    int from = 0, to = -kLinePixels;  // the run that has been found and may go on
    for (int word = begin / kBits; word * kBits < end; ++word) {
      Word bits = line.at(object, word) & pixels_in_word<Word>(word * kBits, begin, end);
      if (word == 0 && comb_begin_ < kCombPixels)
        bits &= ~pixels_in_word<Word>(0, comb_begin_, kCombPixels);
      while (bits) {
        const Word rest = bits + (bits & -bits);  // carries to the first 0 after the lowest 1s
        const int at = word * kBits + first_bit(bits);
        if (at - to >= gap) {
          if (to > 0) sink_.add_run(object, color, from, to, !whole_);
          from = at;
        }
        to = word * kBits + (rest ? first_bit(rest) : kBits);
        bits &= rest;
      }
    }
    if (to > 0) sink_.add_run(object, color, from, to, !whole_);
  }
};

}  // namespace cule
