// The sound of a step: the part that plays notes what the program has left in the registers of
// sound at each frame's end, and this makes samples of it afterwards.
//
// As in ale-py, a step has as many frames' samples as it has frames, also if the game ends before
// the last: what sounds goes on.
#pragma once

#include "common/lanes.h"
#include "kernels/batch.h"

namespace cule {

CULE_INLINE bool hears(const Batch& batch) { return batch.sound_frames != 0; }

CULE_INLINE size_t sound_bytes(const Batch& batch) {
  return static_cast<size_t>(batch.sound_frames) * kFrameSamples;
}
CULE_INLINE uint8_t* sounds_of(const Batch& batch, size_t env) {
  return batch.sounds + env * sound_bytes(batch);
}
CULE_INLINE uint8_t* final_sounds_of(const Batch& batch, size_t env) {
  return batch.final_sounds + env * sound_bytes(batch);
}
// An env's sound, with the place of its newest frame's samples.
CULE_INLINE EnvSound sound_of(const Batch& batch, size_t env) {
  if (!hears(batch)) return {nullptr, nullptr};
  uint8_t* newest = sounds_of(batch, env) + sound_bytes(batch) - kFrameSamples;
  return {batch.sound + env, reinterpret_cast<uint32_t*>(newest)};
}

// The registers at the end of frame number `frame` of a step.
CULE_INLINE uint32_t& heard_in(const Batch& batch, size_t env, int32_t frame) {
  const size_t envs = static_cast<size_t>(batch.num_envs);
  return batch.heard[static_cast<size_t>(frame) * envs + env];
}
CULE_INLINE void note_heard(const Batch& batch, size_t env, int32_t frame) {
  heard_in(batch, env, frame) = heard_registers(batch.sound[env]);
}
// For the frames from number `done` on, which are not played as the episode has ended.
CULE_INLINE void note_heard_after_end(const Batch& batch, size_t env, int32_t done) {
  for (; done < batch.options.frameskip; ++done) note_heard(batch, env, done);
}
// For an env that plays no step.
CULE_INLINE void note_nothing_heard(const Batch& batch, size_t env) {
  heard_in(batch, env, 0) = kNothingHeard;
}

// After a start of an episode: the frames before its newest are silent.
template <class Lanes>
CULE_INLINE void silence_older(const Batch& batch, size_t env, const Lanes& lanes) {
  uint32_t* samples = reinterpret_cast<uint32_t*>(sounds_of(batch, env));
  const int words = (batch.sound_frames - 1) * (kFrameSamples / 4);
  for (int i = lanes.lane(); i < words; i += Lanes::kCount) samples[i] = kSilence;
}

// Makes the samples of env's step. `loud` is memory that all lanes share.
template <class Lanes>
CULE_INLINE void hear(const Batch& batch, size_t env, SoundBits (&loud)[kSoundChannels],
                      const Lanes& lanes) {
  if (heard_in(batch, env, 0) == kNothingHeard) return;
  constexpr int kWords = kFrameSamples / 4;
  uint32_t* samples = reinterpret_cast<uint32_t*>(sounds_of(batch, env));
  // One console's steps can have fewer frames than it has room for.
  const int32_t first = batch.sound_frames - batch.options.frameskip;
  for (int i = lanes.lane(); i < first * kWords; i += Lanes::kCount) samples[i] = kSilence;
  for (int32_t frame = 0; frame < batch.options.frameskip; ++frame) {
    hear_frame(batch.sound[env], heard_in(batch, env, frame), samples + (first + frame) * kWords,
               loud, lanes);
  }
}
CULE_INLINE void hear(const Batch& batch, size_t env) {
  SoundBits loud[kSoundChannels];
  hear(batch, env, loud, OneLane{});
}

}  // namespace cule
