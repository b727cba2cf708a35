// Divides a picture into segments of kSegmentLines scanlines. Each segment can be drawn on its own
// from the TIA's state at its start.
//
// The chip draws a frame from top to bottom. Segments give the same picture, bit for bit.
#pragma once

#include "tia/log/replay.h"

namespace cule {

constexpr int kSegmentLines = 16;
constexpr int kSegments = 16;  // of the tallest picture, 250 lines

// A state from which a segment can be drawn, and the next entry to replay. Both belong to
// the start of the segment, or to a point some lines before it. The state's beam may lag further
// behind (deferred_beam.h). `entry` is kNoSegment if there is nothing to draw.
struct SegmentStart {
  TiaState tia;
  uint32_t entry;
};
constexpr uint32_t kNoSegment = ~0u;

CULE_INLINE int32_t segment_clock(const TiaFormat& format, int segment) {
  return format.first_clock + segment * kSegmentLines * kClocksPerLine;
}

// The color clock at which `count` segments from `segment` on end. The last segment ends with the
// picture.
CULE_INLINE int32_t end_clock(const TiaFormat& format, int segment, int count) {
  const int32_t end = segment_clock(format, segment + count);
  return segment + count < kSegments && end < format.last_clock ? end : format.last_clock;
}

// The entries of a replay: those below `count`, then `last`, which ends the frame or only moves the
// beam. Collisions before entry `after_clear` do not matter, as a CXCLR clears them.
struct Replay {
  const uint32_t* entries;
  uint32_t count, after_clear, last;

  CULE_INLINE uint32_t operator[](uint32_t i) const { return i < count ? entries[i] : last; }
};
constexpr uint32_t kFrameEnd = kMarkFrameEnd << kEntryRegisterShift;  // the entry, of any cycle

// Whether an entry ends the drawing of a frame. Lines may still turn grey after that.
CULE_INLINE bool ends_drawing(uint32_t entry) { return entry_register(entry) >= kMarkGreyOut; }

// Replays entries from `at` on, and shows the result in `view`. Shows nothing before color clock
// `begin`. A view may delay latching collisions until its flush(). It is told when the latches are
// cleared.
template <class View>
struct SegmentReplay {
  SegmentStart& at;
  const TiaFormat& format;
  const Replay replay;
  int32_t begin;
  View& view;
  uint32_t entry = replay[at.entry];  // loaded before it takes effect

  // Continues to color clock `end`, but not past the frame or the last entry. Returns whether there
  // is more to do. `begin` and `end` must be starts of scanlines. With `kOneLine`, the part to show
  // must be at most one scanline.
  template <bool kOneLine = false>
  CULE_INLINE bool go_on(int32_t end) {
    TiaState& tia = at.tia;
    for (;;) {
      if (ends_drawing(entry)) return false;
      const bool at_last = at.entry >= replay.count;
      const uint32_t next = replay[at.entry + 1];  // loads while the view draws up to this entry
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

  // Completes the collision latches. Must be called before they are used.
  CULE_INLINE void latch() {
    view.flush(at.tia);
    if (at.entry < replay.after_clear) at.tia.collisions = 0;
  }
};

// Replays a segment as a whole.
template <class View>
CULE_INLINE void replay_segment(SegmentStart& at, const TiaFormat& format, const Replay& replay,
                                int32_t begin, int32_t end, View& view) {
  SegmentReplay<View> segment{at, format, replay, begin, view};
  if (at.tia.cursor < end) segment.go_on(end);
  segment.latch();
}

}  // namespace cule
