// From pictures to observations: palette, maximum of two frames, area resize, frame stack.
#pragma once

#include "kernels/observe/alone.h"
#include "kernels/observe/pool.h"
#include "kernels/observe/stack.h"
#include "kernels/observe/window.h"

namespace cule {

// Makes the env's new observation, by one thread. `flags` (TraceFlag) say what it is made of.
template <int kChannels>
inline void observe_alone(const Batch& batch, size_t env, uint32_t flags) {
  const OneLane lane;
  const ObservationFormat& format = batch.observation;
  shift_stack(batch, env, flags, lane);
  if (!(flags & kPools)) return;
  if (needs_pooled(flags)) pool_frame(batch, env, flags, picture_pair(batch, env), lane);
  resample_frame<kChannels>(format, format.resamples[batch.group[env]],
                            frame_source(batch, env, flags),
                            palette_of(batch, config_of(batch, env)), newest_frame(batch, env));
  note_observed(batch, env, flags);
}
inline void observe(const Batch& batch, size_t env, uint32_t flags) {
  if (batch.observation.channels == 1) observe_alone<1>(batch, env, flags);
  else observe_alone<3>(batch, env, flags);
}

}  // namespace cule
