// Makes an observation of an env's pictures on the CPU: palette, maximum of two frames, resize,
// frame stack.
#pragma once

#include "kernels/cpu/resized_frame.h"
#include "kernels/observe/pool.h"
#include "kernels/observe/stack.h"
#include CULE_VECTORS

namespace cule {

template <class Vectors, int kChannels>
CULE_INLINE void make_frame(const Batch& batch, size_t env, ObservationPlan plan,
                            ResizeSpace& space) {
  const Resample& resample = batch.observation.resamples[batch.group[env]];
  const FrameSource source = frame_source(batch, env, plan);
  space.prepare(resample, batch.observation, palette_of(batch, config_of(batch, env)));
  ResizedFrame<Vectors, kChannels>(batch.observation, resample, source, space,
                                   newest_frame(batch, env))
      .make();
}

// A way to make an env's newest frame: with a set of vector instructions.
struct VectorLevel {
  const char* name;
  bool supported;  // whether the processor at hand has the instructions
  void (*make_frame)(const Batch& batch, size_t env, ObservationPlan plan, ResizeSpace& space);
};

// A function for each level, which is compiled for its instructions.
#define CULE_LEVEL_FUNCTION(name, Vectors, attribute, supported)                                \
  attribute inline void make_frame_##name(const Batch& batch, size_t env, ObservationPlan plan, \
                                          ResizeSpace& space) {                                 \
    if (batch.observation.channels == 1) make_frame<Vectors, 1>(batch, env, plan, space);       \
    else make_frame<Vectors, 3>(batch, env, plan, space);                                       \
  }
CULE_VECTOR_LEVELS(CULE_LEVEL_FUNCTION)
#undef CULE_LEVEL_FUNCTION

// All levels of this machine, the best first. The last is supported everywhere.
inline std::vector<VectorLevel> vector_levels() {
#define CULE_LEVEL(name, Vectors, attribute, supported) \
  {#name, static_cast<bool>(supported), make_frame_##name},
  return {CULE_VECTOR_LEVELS(CULE_LEVEL)};
#undef CULE_LEVEL
}
inline const VectorLevel& best_vector_level() {
  static const std::vector<VectorLevel> levels = vector_levels();
  static const VectorLevel& best =
      *std::find_if(levels.begin(), levels.end(),
                    [](const VectorLevel& level) { return level.supported; });
  return best;
}

// Makes the env's new observation.
inline void observe(const Batch& batch, size_t env, ObservationPlan plan, const VectorLevel& level,
                    ResizeSpace& space) {
  const OneLane lane;
  shift_stack(batch, env, plan, lane);
  if (!adds_frame(plan)) return;
  if (needs_pooled(plan)) pool_frame(batch, env, plan, picture_pair(batch, env), lane);
  level.make_frame(batch, env, plan, space);
  if (fills_stack(batch, plan)) fill_stack(batch, env, lane);
  screen_of(batch, env).shown = shown_by(plan);
}

}  // namespace cule
