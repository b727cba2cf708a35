// What the CPU part keeps of the TIA while a frame runs: the log of writes, the states from which
// segments of the picture can be drawn, and the collisions that programs read.
//
// The latches that a program has read before are kept up to date while it runs. After each stretch
// of scanlines, when the lanes of a warp are together, this looks at what the objects have shown
// and where they have been (tia/collisions/bounds.h). Only if both objects of a latch can have been
// in the same place (tia/collisions/prefilter.h), it searches what was written since the last look
// (tia/collisions/search.h), or puts that off until the program reads such a latch
// (tia/collisions/late_searches.h). For a latch that is read for the first time, it searches all
// segments since the last CXCLR.
#pragma once

#include "console/record.h"
#include "tia/collisions/late_searches.h"
#include "tia/collisions/prefilter.h"

namespace cule {

// The log of an env's writes to the TIA, for one step.
struct InstructionBuffer {
  uint32_t* entries;
  uint32_t capacity;
  uint32_t count;
  uint32_t after_clear;  // the entry after the last CXCLR: earlier ones no longer set latches
};

// Longer buffers that envs share on a GPU. If an env's own buffer runs short, the env takes one of
// these.
struct SpareBuffers {
  uint32_t* entries;  // [count][capacity]
  uint32_t count, capacity;
  uint32_t* taken;  // how many times one was asked for
};

// The states from which the segments of a step's frames begin. Segment s of frame f is in slot
// f * kSegments + s.
struct SegmentStarts {
  RecordLayout layout;
  size_t env;

  CULE_INLINE void load(size_t slot, SegmentStart& start) const {
    load_part(layout, env, slot * sizeof(SegmentStart), start);
  }
  CULE_INLINE void store(size_t slot, const SegmentStart& start) const {
    store_part(layout, env, slot * sizeof(SegmentStart), start);
  }
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

// Returns which of `latches` are set by the segment in `slot`.
CULE_INLINE uint32_t search_segment(const TiaFormat& format, const SegmentStarts& starts,
                                    size_t slot, const Replay& replay, uint32_t latches) {
  const int segment = static_cast<int>(slot % kSegments);
  const int32_t begin = segment_clock(format, segment), end = end_clock(format, segment, 1);
  SegmentStart at;
  starts.load(slot, at);
  return search_entries(at, format, replay, begin, end, latches);
}

// A *stretch* is the scanlines between two looks for collisions. They are the same ones for all
// lanes of a warp. Each segment of the picture begins kSegmentDelay after a stretch does.
constexpr int32_t kStretchLines = 8, kStretchCycles = kStretchLines * kCyclesPerLine;
constexpr int32_t kSegmentDelay = 2 * kClocksPerLine;
static_assert(kSegmentLines % kStretchLines == 0);

// The cycle at which the stretch with cycle `cycle` ends.
CULE_INLINE int32_t stretch_end(const TiaFormat& format, int32_t cycle) {
  const int32_t line = (format.first_clock - kSegmentDelay) / kClocksPerLine % kStretchLines;
  const int32_t since = cycle + kStretchCycles - line * kCyclesPerLine;
  return cycle + kStretchCycles - since % kStretchCycles;
}

// What the CPU part keeps of the TIA while a step runs, in addition to its state and the buffer.
struct TiaTrail {
  SegmentStarts starts;
  int frame, segment;   // the current frame, and the next of its segments to begin
  SegmentStart next;    // the state with which that one begins, if it begins soon
  uint32_t clear_slot;  // the first slot that may have something after the last CXCLR
  // Collisions have been looked for up to color clock `followed` of the frame. A replay from
  // `start` shows all that comes later.
  SegmentStart start;
  PlacesLeft left;  // since `start`
  int32_t followed;
  uint32_t before;  // the latches before the last look
  SpareBuffers spares{};
  uint32_t spare = 0;  // the number of the spare buffer that this env has taken, from 1 on; 0: none
  LateSearches late;

  // A step begins.
  CULE_INLINE void clear() {
    frame = -1;
    segment = 0;
    clear_slot = 0;
    late.clear();
  }
  CULE_INLINE void begin_frame() {
    ++frame;
    segment = 0;
  }
  // A frame begins: all earlier writes have taken effect, and `tia` has the beam at its place.
  CULE_INLINE void begin_following(const TiaState& tia, uint32_t entry, uint32_t latches) {
    next = start = {tia, entry};
    followed = kFromTheBeam;
    left.begin(tia, latches);
  }
  // Whether some of the picture is drawn between the last look and `cycle`, or soon after.
  CULE_INLINE bool nears_picture(const TiaFormat& format, int32_t cycle) const {
    return cycle * kClocksPerCycle + kSegmentDelay > format.first_clock &&
           followed < format.last_clock;
  }
  // Whether to look for collisions before a stretch that begins at cycle `begin`. Looks begin
  // shortly before the picture does.
  CULE_INLINE bool is_due(const TiaFormat& format, int32_t begin) const {
    return followed < format.last_clock &&
           begin * kClocksPerCycle >= format.first_clock - kSegmentDelay;
  }
  static constexpr int32_t kFromTheBeam = -0x7FFFFFFF;
  CULE_INLINE uint32_t first_slot() const { return static_cast<uint32_t>(frame * kSegments); }
  // CXCLR clears the latches. The newest segment may not have begun yet.
  CULE_INLINE void note_clear() {
    clear_slot = first_slot() + static_cast<uint32_t>(segment > 2 ? segment - 2 : 0);
    late.clear();
  }
};

// Moves the entries of `buffer` to a spare buffer. Returns the spare buffer's memory, or null if
// none is left.
CULE_COLD uint32_t* move_to_spare(TiaTrail& trail, const InstructionBuffer buffer) {
  SpareBuffers& spares = trail.spares;
  if (spares.count == 0 || trail.spare) return nullptr;
  const uint32_t number = take_number(spares.taken);
  if (number >= spares.count) {
    spares.count = 0;  // do not ask again: the counter must not overflow
    return nullptr;
  }
  trail.spare = number + 1;
  uint32_t* entries = spares.entries + static_cast<size_t>(number) * spares.capacity;
  for (uint32_t i = 0; i < buffer.count; ++i) entries[i] = buffer.entries[i];
  return entries;
}

// Begins the segments whose first clock is before `clock`, with the state that was kept last.
CULE_COLD void begin_segments(TiaTrail& trail, const TiaFormat& format, int32_t clock) {
  const int32_t before = clock < format.last_clock ? clock : format.last_clock;
#pragma unroll 1
  while (trail.segment < kSegments && segment_clock(format, trail.segment) < before) {
    trail.starts.store(trail.first_slot() + static_cast<uint32_t>(trail.segment++), trail.next);
  }
}

// Returns which of `latches` were set after the last CXCLR and before `cycle`.
CULE_COLD uint32_t search_latches(const TiaTrail& trail, const TiaFormat& format,
                                  const InstructionBuffer buffer, uint32_t latches, int32_t cycle) {
  const Replay replay{buffer.entries, buffer.count, buffer.after_clear,
                      encode_entry(cycle, kMarkTouch, 0)};
  const uint32_t end = trail.first_slot() + static_cast<uint32_t>(trail.segment);
  uint32_t found = 0;
#pragma unroll 1
  for (uint32_t slot = trail.clear_slot; slot < end && (latches & ~found); ++slot) {
    if (trail.starts.entry_of(slot) == kNoSegment) continue;
    found |= search_segment(format, trail.starts, slot, replay, latches & ~found);
  }
  return found;
}

// Does all late searches.
CULE_INLINE void search_late(TiaTrail& trail, const TiaFormat& format, TiaState& tia) {
  tia.collisions |= static_cast<uint16_t>(trail.late.find(format, tia.collisions));
}

// Searches for those of `latches` that were set since the last look, now or later. What is drawn
// before clock `end` counts, as far as the frame has come at `cycle`.
CULE_INLINE void search_since_last(TiaTrail& trail, const TiaFormat& format,
                                   const InstructionBuffer& buffer, TiaState& tia,
                                   uint32_t latches, int32_t cycle, int32_t end) {
  const Replay replay{buffer.entries, buffer.count, buffer.after_clear,
                      encode_entry(cycle, kMarkTouch, 0)};
  if (kSearchesLate) {
    if (trail.late.is_full()) search_late(trail, format, tia);
    trail.late.add(trail.start, replay, trail.followed, end, latches);
  } else {
    SegmentStart at = trail.start;
    tia.collisions |= static_cast<uint16_t>(
        search_entries(at, format, replay, trail.followed, end, latches));
  }
}

// Lets the next look begin at `clock`, at which `tia` is the state. Returns the ShownBounds from
// there on; they go on with those of `seen` if the replay still has to begin at the old place.
CULE_INLINE ShownBounds go_on_from(TiaTrail& trail, const InstructionBuffer& buffer,
                                 const TiaState& tia, const ShownBounds& seen, uint32_t latches,
                                 int32_t clock) {
  trail.followed = clock;
  if (trail.start.entry == buffer.count) return seen;  // only the beam has moved
  // The last write may take effect after `clock`, if nothing is visible before it does.
  const int32_t visible = clock - clock % kClocksPerLine + kHblankClocks;
  const int32_t written = entry_cycle(buffer.entries[buffer.count - 1]) * kClocksPerCycle;
  if (written + kLongestDelay > (clock > visible ? clock : visible)) return seen;
  trail.start = {tia, buffer.count};
  trail.left.begin(tia, latches);
  return ShownBounds(tia);
}

// Brings the latches of `wanted` in `tia` up to date, as of `cycle`, but for late searches. `seen`
// has the sightings since the last look; this returns those since the new one. `drawn` says that an
// access to the TIA has drawn the frame up to `cycle`. Else the next access will, if there is one
// in this frame (finish_frame).
CULE_COLD ShownBounds follow_collisions(TiaTrail& trail, const TiaFormat& format,
                                      const InstructionBuffer buffer, TiaState& tia,
                                      const ShownBounds seen, uint32_t wanted, int32_t cycle,
                                      bool drawn) {
  const int32_t clock = cycle * kClocksPerCycle;
  trail.before = tia.collisions;
  uint32_t possible = wanted & ~tia.collisions & possible_latches(seen.on());
  if (clock + kLongestDelay <= format.first_clock) possible = 0;
  if (possible) possible = latches_within_bounds(tia, trail.left, seen, possible);
  if (possible) {
    search_since_last(trail, format, buffer, tia, possible, cycle,
                      drawn ? format.last_clock : clock);
  }
  return go_on_from(trail, buffer, tia, seen, wanted, clock);
}

// The same when a program reads `latches`, which need no late search afterwards. It has not read
// those of `new_ones` before.
CULE_COLD ShownBounds read_latches(TiaTrail& trail, const TiaFormat& format,
                                 const InstructionBuffer buffer, TiaState& tia,
                                 ShownBounds seen, uint32_t wanted, uint32_t latches,
                                 uint32_t new_ones, int32_t cycle) {
  if (new_ones) {
    begin_segments(trail, format, cycle * kClocksPerCycle + kLongestDelay);
    tia.collisions |=
        static_cast<uint16_t>(search_latches(trail, format, buffer, new_ones, cycle));
    trail.left.objects = objects_of_latches(wanted) & kMovableObjects;
  }
  // If none of the latches that it reads can have been set, all can wait for the next look.
  const bool possible = (latches & ~tia.collisions & possible_latches(seen.on())) != 0;
  if (possible && trail.nears_picture(format, cycle))
    seen = follow_collisions(trail, format, buffer, tia, seen, wanted, cycle, true);
  if (trail.late.are_for(latches & ~tia.collisions)) search_late(trail, format, tia);
  return seen;
}

}  // namespace cule
