// The TIA's side of a frame while it runs: the instruction buffer that the processor fills, from where segments of the picture can be
// drawn, and the search for collisions when a program reads their latches.
//
// A program that reads latches does so some time after they were set, mostly once a frame, and mostly finds them as they were. So nothing
// is looked for before: then the segments since the last CXCLR are, one after the other, first for objects that can have met (near.h),
// and only where there are any pixel by pixel. A search goes on where the last one ended.
#pragma once

#include "console/record.h"
#include "tia/near.h"

namespace cule {

// The env's TIA instruction buffer for one step.
struct InstructionBuffer {
  uint32_t* entries;
  uint32_t capacity;
  uint32_t count;
  uint32_t after_clear;  // the entry after the last CXCLR: what came before it no longer shows in the latches
};

// Where the segments of a step's frames begin, segment s of frame f in slot f * kSegments + s.
struct SegmentStarts {
  RecordLayout layout;
  size_t env;

  CULE_INLINE void load(size_t slot, SegmentStart& start) const { load_part(layout, env, slot * sizeof(SegmentStart), start); }
  CULE_INLINE void store(size_t slot, const SegmentStart& start) const { store_part(layout, env, slot * sizeof(SegmentStart), start); }
  CULE_INLINE uint32_t entry_of(size_t slot) const {
    uint32_t entry;
    load_part(layout, env, slot * sizeof(SegmentStart) + offsetof(SegmentStart, entry), entry);
    return entry;
  }
  CULE_INLINE void forget(size_t slot) const {
    const uint32_t none = kNoSegment;
    store_part(layout, env, slot * sizeof(SegmentStart) + offsetof(SegmentStart, entry), none);
  }
};

// Looks for collisions in one segment, and goes on there when more of it has been played.
struct SegmentSearch {
  SegmentStart at;
  Whereabouts whereabouts;
  CollisionView view;
  bool begun = false;
  bool close = false;  // objects can have met in it, so that it is looked at pixel by pixel

  // Returns those of `latches` that have been set in the segment in `slot`. They are the same each time, but for some that are known.
  CULE_INLINE uint32_t search(const TiaFormat& format, const SegmentStarts& starts, size_t slot, const Replay& replay, uint32_t latches) {
    const int segment = static_cast<int>(slot % kSegments);
    const int32_t begin = segment_clock(format, segment), end = end_clock(format, segment, 1);
    if (!begun) {
      starts.load(slot, at);
      whereabouts = {};
      begun = true;
      close = false;
    }
    if (!close) {
      look_around(at, format, replay, begin, end, objects_of_latches(latches), whereabouts);
      if (!whereabouts.may_set(latches)) return 0;
      starts.load(slot, at);
      at.tia.collisions = 0;
      view = {};
      close = true;
    }
    view.wanted = latches;
    replay_segment(at, format, replay, begin, end, view);
    return at.tia.collisions;
  }
};

// What the CPU part keeps of the TIA while a step runs, beside its state and the buffer.
struct TiaTrail {
  SegmentStarts starts;
  int frame, segment;      // the frame that runs, and the next of its segments to begin
  uint32_t clear_slot;     // the first slot in which there is anything since the last CXCLR
  uint32_t slot, latches;  // the first slot that has not been searched to its end, and for which latches those before were
  SegmentSearch search;    // of `slot`

  // A step begins.
  CULE_INLINE void clear() {
    frame = -1;
    segment = 0;
    clear_slot = slot = latches = 0;
    search.begun = false;
  }
  CULE_INLINE void begin_frame() {
    ++frame;
    segment = 0;
  }
  CULE_INLINE uint32_t first_slot() const { return static_cast<uint32_t>(frame * kSegments); }
  // Latches are cleared. The newest segment may not have begun yet.
  CULE_INLINE void note_clear() { clear_slot = first_slot() + static_cast<uint32_t>(segment > 2 ? segment - 2 : 0); }
};

// Keeps `tia` as it is before entry `entry` for the segments that begin before `clock`.
CULE_COLD void keep_starts(TiaTrail& trail, const TiaFormat& format, const TiaState& tia, uint32_t entry, int32_t clock) {
  const SegmentStart start{tia, entry};
#pragma unroll 1
  while (trail.segment < kSegments && segment_clock(format, trail.segment) < (clock < format.last_clock ? clock : format.last_clock)) {
    trail.starts.store(trail.first_slot() + static_cast<uint32_t>(trail.segment++), start);
  }
}

// The latches that are set at `cycle`: `known`, and those of `wanted` that have been set since. Latches that were not wanted so far are
// looked for from the last CXCLR on.
CULE_COLD uint32_t search_latches(TiaTrail& trail, const TiaFormat& format, const InstructionBuffer buffer, uint32_t wanted, uint32_t known,
                                  int32_t cycle) {
  const uint32_t behind = wanted & ~trail.latches ? 0 : trail.slot;
  const uint32_t from = behind < trail.clear_slot ? trail.clear_slot : behind;
  if (from != trail.slot || (wanted & ~trail.latches)) trail.search.begun = false;
  trail.latches = wanted;
  const Replay replay{buffer.entries, buffer.count, buffer.after_clear, encode_entry(cycle, kMarkTouch, 0)};
  const uint32_t end = trail.first_slot() + static_cast<uint32_t>(trail.segment);
#pragma unroll 1
  for (trail.slot = from; trail.slot < end; ++trail.slot) {
    const uint32_t latches = wanted & ~known;
    if (latches && trail.starts.entry_of(trail.slot) != kNoSegment) {
      known |= trail.search.search(format, trail.starts, trail.slot, replay, latches);
    }
    const int segment = static_cast<int>(trail.slot % kSegments);
    if (trail.slot >= trail.first_slot() && cycle * kClocksPerCycle < end_clock(format, segment, 1)) break;
    trail.search.begun = false;
  }
  return known;
}

}  // namespace cule
