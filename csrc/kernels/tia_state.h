// Where the CPU part of a step stores the TIA's state for the TIA part (draw.h), and the collision
// latches in an env's record, which the TIA part adds to.
#pragma once

#include "console/latch_search.h"
#include "kernels/batch.h"

namespace cule {

// Segment starts are stored as words, like records. On a GPU, word w of slot s of env e is at
// words[(s * kSegmentWords + w) * num_envs + e]. On a CPU each thread has memory for the env that
// it works on. The last slot, after the segments of all frames of a step, has the state after the
// last frame.
constexpr size_t kSegmentWords = sizeof(SegmentStart) / 4;
CULE_INLINE size_t segment_slots(const StepOptions& options) {
  return static_cast<size_t>(options.frameskip > 0 ? options.frameskip : 1) *
         kSegments;  // outside steps frameskip may be 0: frames are then played one by one
}
CULE_INLINE size_t segment_words(const StepOptions& options) {
  return kSegmentWords * (segment_slots(options) + 1);
}

CULE_INLINE SegmentStarts starts_of_env(const Batch& batch, size_t env) {
  return {{batch.segments, static_cast<size_t>(batch.num_envs), 1}, env};
}
CULE_INLINE SegmentStarts starts_of_one_env(uint32_t* words) { return {{words, 1, 0}, 0}; }

// Before the CPU part: no segment has begun.
CULE_INLINE void clear_starts(const Batch& batch, const SegmentStarts& starts) {
  for (size_t slot = 0; slot <= segment_slots(batch.options); ++slot) starts.forget(slot);
}

// After the CPU part: stores the state after the last frame.
template <class M>
CULE_INLINE void store_end_state(const Batch& batch, size_t env, const M& machine) {
  const uint32_t entries = batch.traces[env].entries;
  if (entries)
    machine.trail.starts.store(segment_slots(batch.options),
                               SegmentStart{machine.ram.tia(), entries});
}

// The word of env's record whose low half is the collision latches.
CULE_INLINE uint32_t& latch_word(const Batch& batch, size_t env) {
  constexpr size_t kByte = offsetof(EnvRecord, tia) + offsetof(TiaState, collisions);
  static_assert(kByte % 4 == 0, "the latches are the low half of their word");
  const RecordLayout& records = batch.records;
  return records.words[kByte / 4 * records.word_stride + env * records.env_stride];
}

}  // namespace cule
