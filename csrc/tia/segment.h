// A picture in segments of kSegmentLines scanlines, each of which can be drawn by itself from the TIA's state where it begins.
#pragma once

#include "tia/eager.h"

namespace cule {

constexpr int kSegmentLines = 15;
constexpr int kSegments = 17;  // of the tallest picture, 250 lines

// From where a segment can be drawn: the state, and the next entry, some lines before the segment begins or there. The beam may have stayed
// further behind (eager.h). `entry` is kNoSegment where there is nothing to draw.
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

// What a replay goes through: entries [.., count), and behind them an entry that ends the frame, or one that only moves the beam.
// Collisions before entry `after_clear` are of no interest, as a CXCLR wipes them out.
struct Replay {
  const uint32_t* entries;
  uint32_t count, after_clear, last;

  CULE_INLINE uint32_t operator[](uint32_t i) const { return i < count ? entries[i] : last; }
};
constexpr uint32_t kFrameEnd = kMarkFrameEnd << kEntryRegisterShift;  // the entry, of any cycle

// Whether nothing is drawn of a frame any more. What turns grey then is another matter.
CULE_INLINE bool ends_drawing(uint32_t entry) { return entry_register(entry) >= kMarkGreyOut; }

// Goes on in `view` from `at` to color clock `end`, but not beyond the frame or the last entry. What comes before clock `begin` is not
// shown. `begin` and `end` are where scanlines begin.
//
// `by_line`: line by line, so that lanes of a warp that are in different segments do the same thing at the same time.
template <class View>
CULE_INLINE void replay_segment(SegmentStart& at, const TiaFormat& format, const Replay& replay, int32_t begin, int32_t end, bool by_line,
                                View& view) {
  TiaState& tia = at.tia;
  int32_t line_end = by_line ? (tia.cursor < begin ? begin : tia.cursor - clocks_into_line(tia)) + kClocksPerLine : end;
  uint32_t entry = replay[at.entry];
  for (bool ended = false; tia.cursor < end && !ended; line_end += kClocksPerLine) {
    for (bool in_line = true; in_line && !ended;) {
      const bool at_last = at.entry >= replay.count;
      const uint32_t next = replay[at.entry + 1];  // on its way while this one is drawn up to
      ended = ends_drawing(entry);
      if (ended) break;
      Effect effect = effect_of<View>(tia, entry);
      in_line = effect.clock < line_end;
      if (!in_line) effect = drawing_until(line_end);
      if (tia.cursor < begin) move_beam(tia, format, effect.clock < begin ? effect.clock : begin);
      draw_until(tia, format, effect.clock, view);
      take_effect(tia, format, effect, view);
      if (at.entry < replay.after_clear) tia.collisions = 0;
      ended = in_line && at_last;
      if (in_line && !at_last) {
        ++at.entry;
        entry = next;
      }
    }
  }
}

}  // namespace cule
