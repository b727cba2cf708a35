// The pooled frame: the source of an observation for which the two pictures are not enough.
//
// For all other observations, no whole pooled frame is written to memory. If later observations may
// need this one too, it is kept (Batch::keeps_pooled).
#pragma once

#include "kernels/lanes.h"
#include "kernels/screen.h"

namespace cule {

CULE_INLINE const uint8_t* palette_of(const Batch& batch, const ConsoleConfig& config) {
  return batch.observation.palettes +
         (config.pal ? 256u * static_cast<uint32_t>(batch.observation.channels) : 0u);
}

// An env's pooled frame. Several envs may share one, and use it one after the other.
CULE_INLINE uint8_t* pooled_of(const Batch& batch, size_t env) {
  return batch.pooled + env / batch.envs_per_pooled * batch.picture_bytes *
                            static_cast<uint32_t>(batch.observation.channels);
}

// Byte `i` of a row of the new frame, from that row of each picture. `old` is the byte that is in
// `pooled` now.
CULE_INLINE uint8_t pool_byte(ObservationPlan plan, const uint8_t* front, const uint8_t* back,
                              const uint8_t* palette, uint32_t channels, uint32_t i, uint32_t old) {
  const uint32_t pixel = channels == 1 ? i : i / 3, channel = channels == 1 ? 0 : i % 3;
  const uint32_t last = palette[front[pixel] * channels + channel];
  if (plan.new_frame == NewFrame::kLast) return static_cast<uint8_t>(last);
  uint32_t other = old;
  if (plan.last_two_share_picture) {  // after pool_between
    if (pools_onto_shown(plan)) return static_cast<uint8_t>(old);
    return static_cast<uint8_t>(last > old ? last : old);
  }
  const uint32_t before = palette[back[pixel] * channels + channel];
  if (plan.new_frame == NewFrame::kLastTwo) other = last;
  return static_cast<uint8_t>(other > before ? other : before);
}

// Updates lines [from, to) of `pooled`, as far as the picture has them, four bytes at a time.
template <class Lanes>
CULE_HD inline void pool_lines(const Batch& batch, size_t env, ObservationPlan plan,
                               const PicturePair& pictures, uint32_t from, uint32_t to,
                               const Lanes& lanes) {
  const ConsoleConfig& config = config_of(batch, env);
  const uint32_t channels = static_cast<uint32_t>(batch.observation.channels);
  const uint8_t* palette = palette_of(batch, config);
  uint32_t* pooled = reinterpret_cast<uint32_t*>(pooled_of(batch, env));
  const uint32_t line_words = kLinePixels * channels / 4,
                 end = (to < config.height ? to : config.height) * line_words;
  for (uint32_t word = from * line_words + static_cast<uint32_t>(lanes.lane()); word < end;
       word += Lanes::kCount) {
    const uint32_t old = pooled[word], line = word / line_words, first = word % line_words * 4;
    const uint8_t *front = pictures.front.row(line), *back = pictures.back.row(line);
    uint32_t out = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t byte = pool_byte(plan, front, back, palette, channels, first + i,
                                      old >> 8 * i & 0xFF);
      out |= byte << 8 * i;
    }
    pooled[word] = out;
  }
}

template <class Lanes>
CULE_HD inline void pool_frame(const Batch& batch, size_t env, ObservationPlan plan,
                               const PicturePair& pictures, const Lanes& lanes) {
  pool_lines(batch, env, plan, pictures, 0, ~0u, lanes);
}

// If frames of a step are pooled one by one (pools_between): the first of them, or one after all.
CULE_INLINE uint32_t first_pooled_between(const StepOptions& options, const StepTrace& trace) {
  if (!pools_between(trace.plan)) return trace.frames;
  return pools_several(options) ? static_cast<uint32_t>(options.frameskip - options.pooled_frames)
                                : trace.frames - 2u;
}

// Then this pools lines [from, to) of a frame before the next one is drawn. The `first` replaces
// the frame in `pooled`, unless that is to be pooled, too; others are pooled onto it. Later
// pool_byte only has to add the last frame.
CULE_HD inline void pool_between(const Batch& batch, size_t env, ObservationPlan plan, bool first,
                                 const Picture& picture, uint32_t from, uint32_t to) {
  const bool replaces = first && !pools_onto_shown(plan);
  const NewFrame made_of = replaces ? NewFrame::kLast : NewFrame::kShownAndLastButOne;
  pool_lines(batch, env, plan_of(made_of), PicturePair{picture, picture}, from, to, OneLane{});
}

}  // namespace cule
