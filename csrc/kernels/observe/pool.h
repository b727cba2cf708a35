// The frame that an observation is made of, where it is not the two pictures alone.
//
// Nothing of the size of a picture is written on the way to an observation, with one exception:
// `pooled`, the frame that an observation is made of, where it cannot be had from the two pictures.
// Where the next may be made of it, too, it is kept (Batch::keeps_pooled).
#pragma once

#include "kernels/batch.h"
#include "kernels/lanes.h"

namespace cule {

// One of them: the observation has a new frame.
constexpr uint32_t kPools = kPoolBoth | kPoolLast | kPoolBackOntoOld;

CULE_INLINE const uint8_t* palette_of(const Batch& batch, const ConsoleConfig& config) {
  return batch.observation.palettes +
         (config.pal ? 256u * static_cast<uint32_t>(batch.observation.channels) : 0u);
}

// A byte of an env's TIA state.
CULE_INLINE uint8_t* tia_byte(const Batch& batch, size_t env, size_t offset) {
  const size_t at = offsetof(EnvRecord, tia) + offset;
  return reinterpret_cast<uint8_t*>(batch.records.words + at / 4 * batch.records.word_stride +
                                    env * batch.records.env_stride) +
         at % 4;
}

// An env's pictures: the last frame's, and the one's before.
struct PicturePair {
  Picture front, back;
};
CULE_INLINE PicturePair picture_pair(const Batch& batch, size_t env) {
  const uint32_t front = *tia_byte(batch, env, offsetof(TiaState, front)) & 1;
  const Pictures pictures = pictures_of(batch, env);
  return {pictures[front], pictures[front ^ 1]};
}

// Whether the frame is not made of the two pictures alone.
CULE_INLINE bool needs_pooled(uint32_t flags) {
  return (flags & kPoolBackOntoOld) || ((flags & kPoolBoth) && (flags & kLastResumed));
}

// The frame that an env, or one of some envs at a time, pools.
CULE_INLINE uint8_t* pooled_of(const Batch& batch, size_t env) {
  return batch.pooled + env / batch.envs_per_pooled * batch.picture_bytes *
                            static_cast<uint32_t>(batch.observation.channels);
}

// Byte `i` of a row of the frame that `flags` (TraceFlag) ask for, from the row that each picture
// has there. `old` is what `pooled` holds.
CULE_INLINE uint8_t pool_byte(uint32_t flags, const uint8_t* front, const uint8_t* back,
                              const uint8_t* palette, uint32_t channels, uint32_t i, uint32_t old) {
  const uint32_t pixel = channels == 1 ? i : i / 3, channel = channels == 1 ? 0 : i % 3;
  const uint32_t last = palette[front[pixel] * channels + channel];
  if (flags & kPoolLast) return static_cast<uint8_t>(last);
  uint32_t other = old;
  if (flags & kLastResumed) {  // after pool_before_last
    if (!(flags & kPoolBoth)) return static_cast<uint8_t>(old);
    return static_cast<uint8_t>(last > old ? last : old);
  }
  const uint32_t before = palette[back[pixel] * channels + channel];
  if (flags & kPoolBoth) other = last;
  return static_cast<uint8_t>(other > before ? other : before);
}

// Brings lines [from, to) of `pooled` up to date, as far as there are such, four bytes at a time.
template <class Lanes>
CULE_HD inline void pool_lines(const Batch& batch, size_t env, uint32_t flags,
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
      const uint32_t byte = pool_byte(flags, front, back, palette, channels, first + i,
                                      old >> 8 * i & 0xFF);
      out |= byte << 8 * i;
    }
    pooled[word] = out;
  }
}

template <class Lanes>
CULE_HD inline void pool_frame(const Batch& batch, size_t env, uint32_t flags,
                               const PicturePair& pictures, const Lanes& lanes) {
  pool_lines(batch, env, flags, pictures, 0, ~0u, lanes);
}

// Takes lines [from, to) of the last frame but one out of the picture that it shares with the last
// (kLastResumed) before that is drawn: in place of the old frame, or onto it. pool_byte then has
// only the last one left to add.
CULE_HD inline void pool_before_last(const Batch& batch, size_t env, uint32_t flags,
                                     const Picture& picture, uint32_t from, uint32_t to) {
  pool_lines(batch, env, flags & kPoolBoth ? kPoolLast : kPoolBackOntoOld,
             PicturePair{picture, picture}, from, to, OneLane{});
}

// Whether the step that `trace` tells of draws over pictures that the newest observation shows,
// which goes on being shown.
CULE_INLINE bool draws_over_observed(const Batch& batch, size_t env, const StepTrace& trace) {
  return trace.entries > 0 && !(trace.flags & (kPoolBoth | kPoolLast)) &&
         *tia_byte(batch, env, offsetof(TiaState, observed));
}

// Saves the frame of the newest observation before the pictures that it is made of are drawn over,
// where this step or a later one may ask for it.
template <class Lanes>
CULE_HD inline void keep_observed(const Batch& batch, size_t env, const Lanes& lanes) {
  uint8_t* observed = tia_byte(batch, env, offsetof(TiaState, observed));
  if (batch.keeps_pooled || (batch.traces[env].flags & kPoolBackOntoOld)) {
    pool_frame(batch, env, *observed, picture_pair(batch, env), lanes);
  }
  lanes.sync();
  if (lanes.lane() == 0) *observed = 0;
}

// Where the frame to be pooled onto has not been kept (kFaultFrameLost), that is black.
CULE_INLINE bool lacks_observed(const Batch& batch, size_t env, const StepTrace& trace) {
  return (trace.flags & kPoolBackOntoOld) && !batch.keeps_pooled &&
         !*tia_byte(batch, env, offsetof(TiaState, observed));
}
template <class Lanes>
CULE_HD inline void blacken_pooled(const Batch& batch, size_t env, const Lanes& lanes) {
  uint8_t* pooled = pooled_of(batch, env);
  const uint32_t bytes = batch.picture_bytes * static_cast<uint32_t>(batch.observation.channels);
  for (uint32_t i = static_cast<uint32_t>(lanes.lane()); i < bytes; i += Lanes::kCount) pooled[i] = 0;
}

// Remembers what the newest observation shows, once that has been made as `flags` ask for.
CULE_INLINE void note_observed(const Batch& batch, size_t env, uint32_t flags) {
  *tia_byte(batch, env, offsetof(TiaState, observed)) = static_cast<uint8_t>(
      needs_pooled(flags) ? 0u : flags & (kPoolLast | kPoolBoth));
}

}  // namespace cule
