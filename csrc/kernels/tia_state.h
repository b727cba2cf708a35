// Where the CPU part of a step leaves the TIA's state for the TIA part (draw.h), and the collision
// latches in an env's record, which the TIA part adds to.
#pragma once

#include "console/latch_search.h"
#include "kernels/batch.h"

namespace cule {

// Segment starts are stored by words, like records: on a GPU word w of slot s of env e at words[(s
// * kSegmentWords + w) * num_envs + e]; on a CPU each thread has them for the env that it works on.
// The state after the last frame comes after those of all frames that a step can have.
constexpr size_t kSegmentWords = sizeof(SegmentStart) / 4;
CULE_INLINE size_t segment_slots(const StepOptions& options) {
  return static_cast<size_t>(options.frameskip > 0 ? options.frameskip : 1) *
         kSegments;  // a frame that is played alone needs its slots
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

// After the CPU part: leaves the state after the last frame.
template <class M>
CULE_INLINE void store_end_state(const Batch& batch, size_t env, const M& machine) {
  const uint32_t entries = batch.traces[env].entries;
  if (entries)
    machine.trail.starts.store(segment_slots(batch.options),
                               SegmentStart{machine.ram.tia(), entries});
}

// The word of env's record that has its collision latches in the low half.
CULE_INLINE uint32_t& latch_word(const Batch& batch, size_t env) {
  constexpr size_t kByte = offsetof(EnvRecord, tia) + offsetof(TiaState, collisions);
  static_assert(kByte % 4 == 0, "the latches are the low half of their word");
  const RecordLayout& records = batch.records;
  return records.words[kByte / 4 * records.word_stride + env * records.env_stride];
}

}  // namespace cule
