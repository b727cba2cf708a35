// Finds boxes around the TIA's objects.
//
// A run is a part of one scanline: pixels of one object and color, from the first to the last, with
// gaps shorter than the group's settings say. The pixels count whatever covers them, unless they
// have the background's color, the beam is off, or the comb of HMOVE hides them. Runs of the same
// class are one box if they touch, also at a corner, or overlap: on the same scanline, on
// neighbouring ones, or over as many scanlines without a run as the settings allow. In a class of
// one color, only runs of the same color do.
//
// Which pixels an object has is in objects.h, with its source. Boxes are the project's own.
#pragma once

#include "tia/chip/beam.h"
#include "tia/chip/objects.h"

namespace cule {

// The columns of an object's row. In a frame's boxes, kKind has a bit for each TiaObject.
enum ObjectField : int { kKind, kX, kY, kWidth, kHeight, kColor, kVisible, kObjectFields };

// The facts of a group's game: a row of settings, then a row for each rule (kernels/object_list.h)
// and for each place (kernels/object_places.h).
constexpr int kObjectFactColumns = 66, kMostObjectRules = 63;
constexpr int kObjectFactRows = kMostObjectRules + 1;
enum ObjectSetting : int {
  kClassOf,           // of each TiaObject
  kPlayerGap = 6,     // pixels of a player are one run if gaps between them are shorter
  kLineGap,           // how many scanlines without a run may be between two of a box
  kOneColorClasses,   // a bit for each class whose boxes are of one color
  kNumRules,
  kNumPlaces,
  kCutFrom,   // boxes end above this scanline, and above each one that is kCutPitch further,
  kCutTo,     // up to this one
  kCutPitch,  // 0: nowhere
};

// The boxes of a frame. Row 0 says how many there are, and how many runs found no room. Each other
// row is a box.
struct FrameBoxes {
  int16_t* rows;  // [room + 1][kObjectFields]
  int room;

  CULE_INLINE int16_t* at(int box) const { return rows + (box + 1) * kObjectFields; }
  CULE_INLINE int16_t& count() const { return rows[0]; }
  CULE_INLINE int16_t& left_out() const { return rows[1]; }
  CULE_INLINE int bytes() const {
    return (room + 1) * kObjectFields * static_cast<int>(sizeof(int16_t));
  }
};

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

// It is told of a frame's scanlines from top to bottom: of each with begin_line, and then of its
// pieces from left to right; or with repeat_line, if it is like the one above.
class BoxFinder {
 public:
  using Word = LineBits;
  static constexpr int kBits = static_cast<int>(sizeof(Word) * 8);
  static constexpr int kWords = (kLinePixels + kBits - 1) / kBits;

  // Puts what it finds into `boxes`, which this empties.
  CULE_INLINE BoxFinder(const int16_t* settings, const FrameBoxes& boxes)
      : settings_(settings), boxes_(boxes) {
    boxes_.count() = boxes_.left_out() = 0;
  }

  CULE_INLINE void repeat_line(int line) {
    if (is_cut(line)) return begin_again(line);
    for (int i = 0; i < num_runs_; ++i) {
      if (runs_[i].line == line_) go_on(runs_[i], line);
    }
    line_ = line;
  }

  CULE_INLINE void begin_line(int line) {
    const bool cut = is_cut(line);
    above_ = cut ? kNoLine : line_;
    line_ = line;
    if (cut) num_runs_ = 0;
    else forget_runs();
  }

  // Pixels [begin, end) of the scanline. `bits.at(object, word)` has the objects' bits, of which
  // those before `begin` may be of another piece. HMOVE's comb begins at pixel `comb_begin`.
  template <class LineObjectBits>
  CULE_HD void piece(int begin, int end, int comb_begin, const PieceLook& look,
                     const LineObjectBits& bits) {
    const bool whole = begin == 0 && end == kLinePixels;
    const bool comparable = whole && whole_ && look == look_ && comb_begin == comb_begin_ &&
                            line_ == above_ + 1;
    whole_ = whole;
    look_ = look;
    comb_begin_ = comb_begin;
#pragma unroll 1
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      Word any = 0, changed = 0;
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        const Word now = bits.at(object, word);
        any |= now;
        changed |= now ^ above_bits_[object][word];
        above_bits_[object][word] = now;
      }
      if (any == 0 || !look.lit) continue;
      if (comparable && changed == 0) repeat_object(object);
      else find_runs(object, begin, end, look, bits);
    }
  }

  // After the frame: the rows then have the boxes' first pixels and sizes.
  CULE_HD void finish() {
    int count = 0;
    for (int i = 0; i < boxes_.count(); ++i) {
      const int16_t* box = boxes_.at(i);
      if (box[kVisible] == 0) continue;
      int16_t* to = boxes_.at(count++);
      for (int field = 0; field < kObjectFields; ++field) to[field] = box[field];
      to[kWidth] = static_cast<int16_t>(to[kWidth] - to[kX]);
      to[kHeight] = static_cast<int16_t>(to[kHeight] - to[kY]);
    }
    boxes_.count() = static_cast<int16_t>(count);
  }

 private:
  static constexpr int kNoLine = -2, kNoBox = -1, kMostRuns = 96, kMostLeftOut = 0x7FFF;
  // Pixels [begin, end) of scanline `line`, which belong to a box.
  struct Run {
    uint8_t begin, end, object, color;
    int16_t line, box;
  };

  const int16_t* settings_;
  // Until finish, kWidth and kHeight are the ends of boxes, and kVisible says whether it is one.
  FrameBoxes boxes_;
  int joined_ = 0;    // how many boxes have become parts of others, so that their rows are free
  int line_ = kNoLine, above_ = kNoLine;
  // The last piece: its look, whether it was a whole scanline, its comb, and its objects' bits.
  PieceLook look_ = {};
  bool whole_ = false;
  int comb_begin_ = kCombPixels;
  Word above_bits_[kNumTiaObjects][kWords] = {};
  Run runs_[kMostRuns];  // those that a run of this scanline may belong to
  int num_runs_ = 0;

  CULE_INLINE int gap_of(uint32_t object) const {
    return object <= kPlayer1 ? settings_[kPlayerGap] : 1;
  }
  // Whether boxes end above a scanline.
  CULE_INLINE bool is_cut(int line) const {
    const int from = settings_[kCutFrom], pitch = settings_[kCutPitch];
    return pitch != 0 && line >= from && line <= settings_[kCutTo] && (line - from) % pitch == 0;
  }
  // The runs of the line above, in new boxes, in the order in which `piece` finds them.
  CULE_COLD void begin_again(int line) {
    int count = 0;
    for (int i = 0; i < num_runs_; ++i) {
      const Run run = runs_[i];
      if (run.line != line_) continue;
      int at = count++;
      for (; at > 0 && is_found_before(run, runs_[at - 1]); --at) runs_[at] = runs_[at - 1];
      runs_[at] = run;
    }
    line_ = line;
    num_runs_ = 0;
    for (int i = 0; i < count; ++i) {
      const Run run = runs_[i];
      add_run(run.object, run.color, run.begin, run.end);
    }
  }
  static CULE_INLINE bool is_found_before(const Run& run, const Run& other) {
    return run.object != other.object ? run.object < other.object : run.begin < other.begin;
  }
  CULE_INLINE void go_on(Run& run, int line) {
    run.line = static_cast<int16_t>(line);
    boxes_.at(run.box)[kHeight] = static_cast<int16_t>(line + 1);
  }
  CULE_INLINE void repeat_object(uint32_t object) {
    for (int i = 0; i < num_runs_; ++i) {
      if (runs_[i].object == object && runs_[i].line == above_) go_on(runs_[i], line_);
    }
  }

  template <class LineObjectBits>
  CULE_INLINE void find_runs(uint32_t object, int begin, int end, const PieceLook& look,
                             const LineObjectBits& bits) {
    constexpr int kHalf = kLinePixels / 2;
    if (object != kPlayfield || !look.is_score()) {
      find_runs_of(object, look.color_of(object), look.background(), begin, end, bits);
      return;
    }
    find_runs_of(object, look.color_of(kPlayer0), look.background(), begin,
                 end < kHalf ? end : kHalf, bits);
    find_runs_of(object, look.color_of(kPlayer1), look.background(), begin > kHalf ? begin : kHalf,
                 end, bits);
  }

  // Finds an object's runs in pixels [begin, end).
  template <class LineObjectBits>
  CULE_INLINE void find_runs_of(uint32_t object, uint32_t color, uint32_t background, int begin,
                                int end, const LineObjectBits& line) {
    if (color == background || begin >= end) return;
    const int gap = gap_of(object);
    int from = 0, to = -kLinePixels;  // the run that has been found and may go on
    for (int word = begin / kBits; word * kBits < end; ++word) {
      Word bits = line.at(object, word) & pixels_in_word<Word>(word * kBits, begin, end);
      if (word == 0 && comb_begin_ < kCombPixels)
        bits &= ~pixels_in_word<Word>(0, comb_begin_, kCombPixels);
      while (bits) {
        const int first = first_bit(bits), at = word * kBits + first;
        const Word rest = ~(bits >> first);
        const int length = rest ? first_bit(rest) : kBits;
        if (at - to >= gap) {
          if (to > 0) add_run(object, color, from, to);
          from = at;
        }
        to = at + length;
        if (first + length >= kBits) break;
        bits &= ~Word{0} << (first + length);
      }
    }
    if (to > 0) add_run(object, color, from, to);
  }

  // Puts a run into the box that it belongs to. If it joins several, they become one.
  CULE_INLINE void add_run(uint32_t object, uint32_t color, int begin, int end) {
    const int of_class = settings_[kClassOf + object];
    const bool one_color = settings_[kOneColorClasses] >> of_class & 1;
    int box = kNoBox, same = num_runs_;
    const int gap = gap_of(object);
    for (int i = 0; i < num_runs_; ++i) {  // the pieces of a scanline may divide a run
      const Run& run = runs_[i];
      if (run.line != line_ || run.object != object || run.color != color) continue;
      if (begin - run.end >= gap) continue;
      begin = run.begin;
      same = i;
      break;
    }
    for (int i = 0; i < num_runs_; ++i) {
      const Run& run = runs_[i];
      if (begin > run.end || run.begin > end) continue;
      if (settings_[kClassOf + run.object] != of_class) continue;
      if (one_color && run.color != color) continue;
      const bool alike = run.begin == begin && run.end == end && run.color == color;
      if (alike && run.object == object && same == num_runs_) same = i;
      if (box == kNoBox) box = run.box;
      else if (box != run.box) join(box, run.box);
    }
    if (same == kMostRuns || (box == kNoBox && (box = new_box()) == kNoBox)) {
      if (boxes_.left_out() < kMostLeftOut) ++boxes_.left_out();
      return;
    }
    runs_[same] = {static_cast<uint8_t>(begin), static_cast<uint8_t>(end),
                   static_cast<uint8_t>(object), static_cast<uint8_t>(color),
                   static_cast<int16_t>(line_), static_cast<int16_t>(box)};
    if (same == num_runs_) ++num_runs_;
    const int16_t row[kObjectFields] = {
        static_cast<int16_t>(1 << object), static_cast<int16_t>(begin), static_cast<int16_t>(line_),
        static_cast<int16_t>(end), static_cast<int16_t>(line_ + 1), static_cast<int16_t>(color), 1};
    unite(boxes_.at(box), row);
  }

  // Makes `box` contain another one, too. A box keeps its color.
  static CULE_INLINE void unite(int16_t* box, const int16_t* other) {
    if (box[kVisible] == 0) {
      for (int field = 0; field < kObjectFields; ++field) box[field] = other[field];
      return;
    }
    box[kKind] |= other[kKind];
    if (other[kX] < box[kX]) box[kX] = other[kX];
    if (other[kY] < box[kY]) box[kY] = other[kY];
    if (other[kWidth] > box[kWidth]) box[kWidth] = other[kWidth];
    if (other[kHeight] > box[kHeight]) box[kHeight] = other[kHeight];
  }
  CULE_COLD void join(int box, int other) {
    unite(boxes_.at(box), boxes_.at(other));
    boxes_.at(other)[kVisible] = 0;
    ++joined_;
    for (int i = 0; i < num_runs_; ++i) {
      if (runs_[i].box == other) runs_[i].box = static_cast<int16_t>(box);
    }
  }
  // Room for a box: at the end, or where one has been joined to another.
  CULE_INLINE int new_box() {
    int16_t& count = boxes_.count();
    if (count < boxes_.room) {
      boxes_.at(count)[kVisible] = 0;
      return count++;
    }
    if (joined_ == 0) return kNoBox;
    --joined_;
    int box = 0;
    while (boxes_.at(box)[kVisible]) ++box;
    return box;
  }
  // Forgets runs that are too far above.
  CULE_INLINE void forget_runs() {
    const int oldest = line_ - 1 - settings_[kLineGap];
    int kept = 0;
    for (int i = 0; i < num_runs_; ++i) {
      if (runs_[i].line >= oldest) runs_[kept++] = runs_[i];
    }
    num_runs_ = kept;
  }
};

}  // namespace cule
