// Makes an observation of an env's pictures: palette, maximum of two frames, resize, frame stack.
#pragma once

#include "kernels/observe/alone.h"
#include "kernels/observe/pool.h"
#include "kernels/observe/stack.h"
#include "kernels/observe/window.h"

namespace cule {

// Makes the env's new observation in one thread.
template <int kChannels>
inline void observe_alone(const Batch& batch, size_t env, ObservationPlan plan) {
  const OneLane lane;
  const ObservationFormat& format = batch.observation;
  shift_stack(batch, env, plan, lane);
  if (!adds_frame(plan)) return;
  if (needs_pooled(plan)) pool_frame(batch, env, plan, picture_pair(batch, env), lane);
  resample_frame<kChannels>(format, format.resamples[batch.group[env]],
                            frame_source(batch, env, plan),
                            palette_of(batch, config_of(batch, env)), newest_frame(batch, env));
  screen_of(batch, env).shown = shown_by(plan);
}
inline void observe(const Batch& batch, size_t env, ObservationPlan plan) {
  if (batch.observation.channels == 1) observe_alone<1>(batch, env, plan);
  else observe_alone<3>(batch, env, plan);
}

}  // namespace cule
