// The pooled frame: what an observation is made of when the two pictures are not enough.
//
// Nothing else as large as a picture is written on the way to an observation. If a later
// observation may be made of it too, it is kept (Batch::keeps_pooled).
#pragma once

#include "kernels/batch.h"
#include "kernels/lanes.h"

namespace cule {

// With one of these, the observation gets a new frame.
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

// An env's pictures: that of the last frame, and that of the one before.
struct PicturePair {
  Picture front, back;
};
CULE_INLINE PicturePair picture_pair(const Batch& batch, size_t env) {
  const uint32_t front = *tia_byte(batch, env, offsetof(TiaState, front)) & 1;
  const Pictures pictures = pictures_of(batch, env);
  return {pictures[front], pictures[front ^ 1]};
}

// Whether the frame is made of more than the two pictures.
CULE_INLINE bool needs_pooled(uint32_t flags) {
  return (flags & kPoolBackOntoOld) || ((flags & kPoolBoth) && (flags & kLastResumed));
}

// An env's pooled frame. Some envs may share one, and use it one after the other.
CULE_INLINE uint8_t* pooled_of(const Batch& batch, size_t env) {
  return batch.pooled + env / batch.envs_per_pooled * batch.picture_bytes *
                            static_cast<uint32_t>(batch.observation.channels);
}

// Byte `i` of a row of the frame that `flags` (TraceFlag) ask for, from that row of each picture.
// `old` is the byte in `pooled`.
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

// Updates lines [from, to) of `pooled`, except those below the picture, four bytes at a time.
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

// For when the last two frames share a picture (kLastResumed): pools lines [from, to) of the first
// of them, before the second is drawn. They replace the old frame, or are pooled onto it. After
// that, pool_byte only has to add the last frame.
CULE_HD inline void pool_before_last(const Batch& batch, size_t env, uint32_t flags,
                                     const Picture& picture, uint32_t from, uint32_t to) {
  pool_lines(batch, env, flags & kPoolBoth ? kPoolLast : kPoolBackOntoOld,
             PicturePair{picture, picture}, from, to, OneLane{});
}

// Whether the step of `trace` draws over pictures that the newest observation is made of, while
// that frame may still be needed.
CULE_INLINE bool draws_over_observed(const Batch& batch, size_t env, const StepTrace& trace) {
  return trace.entries > 0 && !(trace.flags & (kPoolBoth | kPoolLast)) &&
         *tia_byte(batch, env, offsetof(TiaState, observed));
}

// Saves the frame of the newest observation before the pictures that it is made of are drawn over,
// if this step or a later one may need it.
template <class Lanes>
CULE_HD inline void keep_observed(const Batch& batch, size_t env, const Lanes& lanes) {
  uint8_t* observed = tia_byte(batch, env, offsetof(TiaState, observed));
  if (batch.keeps_pooled || (batch.traces[env].flags & kPoolBackOntoOld)) {
    pool_frame(batch, env, *observed, picture_pair(batch, env), lanes);
  }
  lanes.sync();
  if (lanes.lane() == 0) *observed = 0;
}

// Whether the frame to pool onto has not been kept (kFaultFrameLost). It is black then.
CULE_INLINE bool lacks_observed(const Batch& batch, size_t env, const StepTrace& trace) {
  return (trace.flags & kPoolBackOntoOld) && !batch.keeps_pooled &&
         !*tia_byte(batch, env, offsetof(TiaState, observed));
}
template <class Lanes>
CULE_HD inline void blacken_pooled(const Batch& batch, size_t env, const Lanes& lanes) {
  uint8_t* pooled = pooled_of(batch, env);
  const uint32_t bytes = batch.picture_bytes * static_cast<uint32_t>(batch.observation.channels);
  for (uint32_t i = static_cast<uint32_t>(lanes.lane()); i < bytes; i += Lanes::kCount)
    pooled[i] = 0;
}

// Notes what the newest observation is made of, once it has been made as `flags` say.
CULE_INLINE void note_observed(const Batch& batch, size_t env, uint32_t flags) {
  *tia_byte(batch, env, offsetof(TiaState, observed)) = static_cast<uint8_t>(
      needs_pooled(flags) ? 0u : flags & (kPoolLast | kPoolBoth));
}

}  // namespace cule
