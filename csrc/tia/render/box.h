// Runs of scanlines, and the boxes around those that belong together (box_finder.h).
#pragma once

#include "tia/render/object_facts.h"
#include "tia/render/run_finder.h"

namespace cule {

// A run, which belongs to a box, or to none that had room. A GPU reads and writes it at once.
struct alignas(8) Run {
  RunLooks looks;
  uint32_t place;  // its last scanline, and the box in the upper half

  static CULE_INLINE uint32_t place_of(int line, int box) {
    return static_cast<uint16_t>(line) | static_cast<uint32_t>(box) << 16;
  }
  static CULE_INLINE int line_of(uint32_t place) { return static_cast<int16_t>(place); }
  static CULE_INLINE int box_of(uint32_t place) { return static_cast<int16_t>(place >> 16); }
  CULE_INLINE int line() const { return line_of(place); }
  CULE_INLINE int box() const { return box_of(place); }

  // The bits of RunLooks in which runs of the same box are equal: the class, and maybe the color.
  static CULE_INLINE uint32_t same_bits(int one_color_classes, int of_class) {
    const bool one_color = one_color_classes >> of_class & 1;
    return RunLooks::kClassBits | (one_color ? RunLooks::kColorBits : 0);
  }
};
// A set of runs in numbered places, a bit for each.
using RunSet = uint64_t;
constexpr int kMostLiveRuns = static_cast<int>(sizeof(RunSet) * 8);

// A box in two words, or what became a part of one.
struct alignas(8) Box {
  // The first pixel, the one after the last, a bit for each TiaObject, and the color, a byte each;
  // or the number of the box that it is a part of.
  uint32_t across;
  uint32_t down;  // the first scanline, and the one after the last in the upper half; or kPart

  static CULE_INLINE Box made(int x, int end, uint32_t objects, uint32_t color, int y, int bottom) {
    return {static_cast<uint32_t>(x) | static_cast<uint32_t>(end) << 8 | objects << 16 |
                color << 24,
            static_cast<uint32_t>(y) | static_cast<uint32_t>(bottom) << 16};
  }
  static CULE_INLINE Box of(RunLooks run, int line) {
    return made(run.begin(), run.end(), 1u << run.object(), run.color(), line, line + 1);
  }
  static CULE_INLINE Box part_of(int whole) { return {static_cast<uint32_t>(whole), kPart}; }
  CULE_INLINE void to_row(int16_t* row) const {
    const uint32_t x = across & 0xFF, y = down & 0xFFFF;
    row[kKind] = static_cast<int16_t>(across >> 16 & 0xFF);
    row[kX] = static_cast<int16_t>(x);
    row[kY] = static_cast<int16_t>(y);
    row[kWidth] = static_cast<int16_t>((across >> 8 & 0xFF) - x);
    row[kHeight] = static_cast<int16_t>((down >> 16) - y);
    row[kColor] = static_cast<int16_t>(across >> 24);
    row[kVisible] = 1;
  }

  CULE_INLINE bool is_part() const { return down == kPart; }
  CULE_INLINE int whole() const { return static_cast<int>(across); }
  // It and another one as one box, which keeps its color.
  CULE_INLINE Box with(Box other) const {
    const uint32_t x = least(across & 0xFF, other.across & 0xFF),
                   end = most(across >> 8 & 0xFF, other.across >> 8 & 0xFF),
                   y = least(down & 0xFFFF, other.down & 0xFFFF),
                   bottom = most(down >> 16, other.down >> 16);
    return {x | end << 8 | (across & 0xFFFF0000) | (other.across & 0xFF0000), y | bottom << 16};
  }
  // The same down to a scanline, if it ends above that.
  CULE_INLINE Box until(int line) const {
    const uint32_t bottom = most(down >> 16, static_cast<uint32_t>(line + 1));
    return {across, (down & 0xFFFF) | bottom << 16};
  }

 private:
  static constexpr uint32_t kPart = ~0u;

  static CULE_INLINE uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
  static CULE_INLINE uint32_t most(uint32_t a, uint32_t b) { return a < b ? b : a; }
};

// Room to find the boxes of a frame in, in one thread: the boxes; the runs that those of the next
// scanline may belong to, two words for each; and the set of those of each object.
struct BoxRoom {
  static constexpr int kMostBoxes = 1024;
  Box boxes[kMostBoxes];
  uint32_t looks[kMostLiveRuns], places[kMostLiveRuns];
  RunSet sets[kNumTiaObjects];

  CULE_INLINE RunLooks looks_of(int run) const { return {looks[run]}; }
  CULE_INLINE int line_of(int run) const { return Run::line_of(places[run]); }
  CULE_INLINE int box_of(int run) const { return Run::box_of(places[run]); }
};

// The boxes of a frame. Row 0 says how many there are, and how many others found no room, with the
// runs of those that one thread has no room to find. Each other row is a box.
struct FrameBoxes {
  int16_t* rows;  // [room + 1][kObjectFields]
  int room;

  CULE_INLINE int16_t* at(int box) const { return rows + (box + 1) * kObjectFields; }
  CULE_INLINE int16_t& count() const { return rows[0]; }
  CULE_INLINE int16_t& left_out() const { return rows[1]; }
};

}  // namespace cule
