// Where the CPU part of a step leaves the TIA's state for the TIA part on a GPU (segments.h).
#pragma once

#include "kernels/batch.h"

namespace cule {

// Segment starts are stored by words, like records: word w of slot s of env e at words[(s * kSegmentWords + w) * num_envs + e]. Behind
// those of all frames that a step can have stands the state after the last.
constexpr size_t kSegmentWords = sizeof(SegmentStart) / 4;
CULE_INLINE size_t segment_slots(const StepOptions& options) { return static_cast<size_t>(options.frameskip) * kSegments; }

CULE_INLINE RecordLayout segment_starts(const Batch& batch) { return {batch.segments, static_cast<size_t>(batch.num_envs), 1}; }
CULE_INLINE uint32_t next_entry_of(const Batch& batch, size_t env, size_t slot) {
  uint32_t entry;
  load_part(segment_starts(batch), env, slot * sizeof(SegmentStart) + offsetof(SegmentStart, entry), entry);
  return entry;
}

// Before the CPU part: no segment has begun.
CULE_INLINE void clear_starts(const Batch& batch, size_t env) {
  const uint32_t none = kNoSegment;
  for (size_t slot = 0; slot <= segment_slots(batch.options); ++slot) {
    store_part(segment_starts(batch), env, slot * sizeof(SegmentStart) + offsetof(SegmentStart, entry), none);
  }
}

// Behind the CPU part: leaves the state after the last frame.
template <class M>
CULE_INLINE void leave_end(const Batch& batch, size_t env, M& machine) {
  const uint32_t entries = batch.traces[env].entries;
  if (entries == 0) return;
  machine.follow_buffer();
  const SegmentStart end{machine.follower.tia, entries};
  store_part(segment_starts(batch), env, segment_slots(batch.options) * sizeof(SegmentStart), end);
}

}  // namespace cule
