// A picture in segments of kSegmentLines scanlines, each of which can be drawn by itself from the
// TIA's state where it begins.
#pragma once

#include "tia/eager.h"

namespace cule {

constexpr int kSegmentLines = 16;
constexpr int kSegments = 16;  // of the tallest picture, 250 lines

// From where a segment can be drawn: the state, and the next entry, some lines before the segment
// begins or there. The beam may have stayed further behind (eager.h). `entry` is kNoSegment where
// there is nothing to draw.
struct SegmentStart {
  TiaState tia;
  uint32_t entry;
};
constexpr uint32_t kNoSegment = ~0u;

CULE_INLINE int32_t segment_clock(const TiaFormat& format, int segment) {
  return format.first_clock + segment * kSegmentLines * kClocksPerLine;
}

// Where `count` segments from `segment` on end; the last one ends with the picture.
CULE_INLINE int32_t end_clock(const TiaFormat& format, int segment, int count) {
  const int32_t end = segment_clock(format, segment + count);
  return segment + count < kSegments && end < format.last_clock ? end : format.last_clock;
}

// What a replay goes through: entries [.., count), and after them an entry that ends the frame, or
// one that only moves the beam. Collisions before entry `after_clear` are of no interest, as a
// CXCLR wipes them out.
struct Replay {
  const uint32_t* entries;
  uint32_t count, after_clear, last;

  CULE_INLINE uint32_t operator[](uint32_t i) const { return i < count ? entries[i] : last; }
};
constexpr uint32_t kFrameEnd = kMarkFrameEnd << kEntryRegisterShift;  // the entry, of any cycle

// Whether nothing is drawn of a frame any more. What turns grey then is another matter.
CULE_INLINE bool ends_drawing(uint32_t entry) { return entry_register(entry) >= kMarkGreyOut; }

// Goes on in `view` from `at`. What comes before color clock `begin` is not shown. A view may latch
// collisions late, until its flush(), and is told where they are cleared.
template <class View>
struct SegmentReplay {
  SegmentStart& at;
  const TiaFormat& format;
  const Replay replay;
  int32_t begin;
  View& view;
  uint32_t entry = replay[at.entry];  // at hand before it takes effect

  // To color clock `end`, but not beyond the frame or the last entry: returns whether there is more
  // to do. `begin` and `end` are where scanlines begin. `kOneLine`: what is shown of it is no more
  // than one scanline.
  template <bool kOneLine = false>
  CULE_INLINE bool go_on(int32_t end) {
    TiaState& tia = at.tia;
    for (;;) {
      if (ends_drawing(entry)) return false;
      const bool at_last = at.entry >= replay.count;
      const uint32_t next = replay[at.entry + 1];  // on its way while this one is drawn up to
      Effect effect = effect_of<View>(tia, entry);
      const bool here = effect.clock < end;
      if (!here) effect = drawing_until(end);
      if (tia.cursor < begin) move_beam(tia, format, effect.clock < begin ? effect.clock : begin);
      draw_until<kOneLine>(tia, format, effect.clock, view);
      if (effect.reg == tia_write::CXCLR) view.collisions_cleared();
      take_effect(tia, format, effect, view);
      if (!here) return true;
      if (at_last) return false;
      ++at.entry;
      entry = next;
    }
  }

  // Before what is latched counts.
  CULE_INLINE void latch() {
    view.flush(at.tia);
    if (at.entry < replay.after_clear) at.tia.collisions = 0;
  }
};

// All of it in one go.
template <class View>
CULE_INLINE void replay_segment(SegmentStart& at, const TiaFormat& format, const Replay& replay,
                                int32_t begin, int32_t end, View& view) {
  SegmentReplay<View> segment{at, format, replay, begin, view};
  if (at.tia.cursor < end) segment.go_on(end);
  segment.latch();
}

}  // namespace cule
