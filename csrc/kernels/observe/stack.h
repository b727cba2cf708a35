// An env's observation: a stack of frames, the newest at the end.
#pragma once

#include "kernels/batch.h"
#include "kernels/lanes.h"

namespace cule {

CULE_INLINE size_t observed_frame_bytes(const ObservationFormat& format) {
  return static_cast<size_t>(format.height) * format.width * format.channels;
}

// Moves each frame to the place of the one before it. The newest also stays in its old place. If
// `fresh`, the older frames become black instead.
template <class Chunk, class Lanes>
CULE_INLINE void shift_chunks(Chunk* stack, size_t chunks, int frames, bool fresh,
                              const Lanes& lanes) {
  constexpr int kAtOnce = 4;  // so many loads do not wait for a store
  for (size_t i = static_cast<size_t>(lanes.lane()); i < chunks; i += Lanes::kCount) {
    for (int frame = 0; frame + 1 < frames; frame += kAtOnce) {
      Chunk held[kAtOnce] = {};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (!fresh && frame + k + 1 < frames)
          held[k] = stack[static_cast<size_t>(frame + k + 1) * chunks + i];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (frame + k + 1 < frames) stack[static_cast<size_t>(frame + k) * chunks + i] = held[k];
      }
    }
  }
}

struct alignas(16) SixteenBytes {
  uint32_t words[4];
};

// Makes room for a new frame at the end of an env's stack. If the plan clears it, all older frames
// become black.
template <class Lanes>
CULE_HD inline void shift_stack(const Batch& batch, size_t env, ObservationPlan plan,
                                const Lanes& lanes) {
  const size_t bytes = observed_frame_bytes(batch.observation);
  const int frames = batch.observation.stack;
  uint8_t* stack = batch.observations + env * bytes * frames;
  const bool fresh = plan.clears_stack;
  if constexpr (Lanes::kCount == 1) {
    const size_t older = bytes * static_cast<size_t>(frames - 1);
    if (fresh) memset(stack, 0, older);
    else memmove(stack, stack + bytes, older);
    return;
  }
  constexpr size_t kChunk = sizeof(SixteenBytes);
  if (bytes % kChunk == 0)
    shift_chunks(reinterpret_cast<SixteenBytes*>(stack), bytes / kChunk, frames, fresh, lanes);
  else shift_chunks(stack, bytes, frames, fresh, lanes);
}

CULE_INLINE uint8_t* newest_frame(const Batch& batch, size_t env) {
  return batch.observations +
         ((env + 1) * batch.observation.stack - 1) * observed_frame_bytes(batch.observation);
}

// Whether a stack that is cleared shows its newest frame in all places, as in EnvPool.
CULE_INLINE bool fills_stack(const Batch& batch, ObservationPlan plan) {
  return plan.clears_stack && start_of(batch.options) == EpisodeStart::kEnvpool;
}
// Copies the newest frame to all places of an env's stack.
template <class Lanes>
CULE_HD inline void fill_stack(const Batch& batch, size_t env, const Lanes& lanes) {
  const size_t bytes = observed_frame_bytes(batch.observation);
  const uint8_t* newest = newest_frame(batch, env);
  uint8_t* stack = batch.observations + env * bytes * batch.observation.stack;
  const size_t older = bytes * static_cast<size_t>(batch.observation.stack - 1);
  for (size_t i = static_cast<size_t>(lanes.lane()); i < older; i += Lanes::kCount)
    stack[i] = newest[i % bytes];
}

}  // namespace cule
