// A picture in segments of kSegmentLines scanlines, each of which can be drawn by itself from the TIA's state where it begins.
#pragma once

#include "tia/tia.h"

namespace cule {

constexpr int kSegmentLines = 15;
constexpr int kSegments = 17;  // of the tallest picture, 250 lines

// Where a segment, or a frame, begins: the state, and the next entry. `entry` is kNoSegment where there is nothing to draw.
struct SegmentStart {
  TiaState tia;
  uint32_t entry;
};
constexpr uint32_t kNoSegment = ~0u;

CULE_INLINE int32_t segment_clock(const TiaFormat& format, int segment) {
  return format.first_clock + segment * kSegmentLines * kClocksPerLine;
}

// The color clock at which an entry takes effect.
CULE_INLINE int32_t entry_clock(uint32_t entry) {
  const int32_t cycle = entry_cycle(entry);
  const uint32_t reg = entry_register(entry);
  return cycle * kClocksPerCycle + (reg < kMarkFrameBegin ? write_delay(reg, cycle) : 0);
}

// Whether `segment` begins before `entry` takes effect. None does at the marks of a frame's beginning and end, which draw nothing.
CULE_INLINE bool begins_before(const TiaFormat& format, int segment, uint32_t entry) {
  const int32_t clock = segment_clock(format, segment);
  const uint32_t reg = entry_register(entry);
  return segment < kSegments && (reg < kMarkFrameBegin || reg == kMarkTouch) && clock < entry_clock(entry) && clock < format.last_clock;
}

}  // namespace cule
