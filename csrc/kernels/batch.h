// A batch of envs as the kernels see it: pointers into memory that the caller owns, and the options
// of a step. batch_fields.h says what each array holds, and its shape.
//
// Both backends use the same struct. On a GPU every pointer is a device pointer, and the struct is
// a kernel parameter.
#pragma once

#include "console/session.h"
#include "kernels/batch_fields.h"
#include "kernels/observe/plan.h"
#include "kernels/patches.h"
#include "tia/render/pictures.h"
#include "tia/render/run_log.h"

namespace cule {

enum class AutoresetMode : uint32_t { kNextStep, kSameStep, kDisabled };
// What is pressed before the first step of an episode (kernels/episode_start.h).
enum class EpisodeStart : int32_t { kAle, kBaselines, kEnvpool, kFire };

struct StepOptions {
#define CULE_OPTION(name, least, most) int32_t name;
#define CULE_FLAG(name) uint32_t name;
#define CULE_REAL(name) float name;
  CULE_STEP_OPTIONS(CULE_OPTION, CULE_FLAG, CULE_REAL)
#undef CULE_OPTION
#undef CULE_FLAG
#undef CULE_REAL
  AutoresetMode autoreset;
};

// Whether the observation of a step is the maximum of two frames or more, or of more than two.
CULE_INLINE bool pools_frames(const StepOptions& options) {
  return options.frameskip >= 2 && options.maxpool;
}
CULE_INLINE bool pools_several(const StepOptions& options) {
  return options.maxpool && options.pooled_frames > 2;
}

// How a picture becomes an observation. For each output row or column, `rows` and `columns` list
// the first source line, how many lines there are, and where their weights begin.
struct ResampleSpan {
  int32_t first, count, weight;
};
// If the observation is larger than the picture on either axis, pixels are interpolated (kLinear).
// The weights are then integers from 0 to 2048.
enum class ResampleKind : uint32_t { kCopy, kArea, kAreaInteger, kLinear };
struct Resample {
  ResampleKind kind;
  const ResampleSpan* rows;     // [observation height]
  const ResampleSpan* columns;  // [observation width]
  const float* weights;
  float scale;                  // kAreaInteger: 1 / source pixels per output pixel
};

struct ObservationFormat {
  int32_t height, width, channels, stack;
  const uint8_t* palettes;    // [2][256][channels]: NTSC, PAL
  const Resample* resamples;  // [num_groups]
};

// The states that episodes start from, `size` for each group. They have the same fields as an env.
// State i of a group is at slot group * size + i.
struct ResetPool {
  int32_t size;  // 0: every reset is emulated
  const uint32_t* records;
  const uint8_t* ram;
  const uint8_t* cartridge_bytes;
  const uint8_t* pictures;
  const SoundState* sound;
  const uint8_t* sounds;  // [kFrameSamples] each
  const int16_t* boxes;
};

// What the phase `restart` does with an env.
enum class Restart : uint8_t { kNone, kNewGame, kNextLife };

// What the CPU part of a step tells the later phases, for each env.
struct StepTrace {
  uint32_t entries;       // how many are in the instruction buffer
  uint32_t after_clear;   // see InstructionBuffer
  uint16_t frames;        // how many were emulated
  ObservationPlan plan;
  Restart restart;        // what a later phase of this call starts
  uint32_t latches_read;  // the collision latches that the program has read
  uint32_t spare;  // the number of the spare buffer with the entries, from 1 on; 0: the env's own
};

constexpr uint32_t kEnvsPerPooled = 96;

// In which order and in which blocks the kernel `play` has the envs, so that those that are alike
// are together (kernels/cuda/order.cuh). Only speed depends on it.
struct PlayOrder {
  uint32_t* keys;    // for each env: what it did in its last frame, below kOrderKeys
  int32_t* envs;     // in the order of their keys
  float* shares;     // for each block of `play`: how many envs it shall have; at first 0
  int32_t* ends;     // for each block: where its part of `envs` ends
  uint32_t* clocks;  // for each block: how long its last step took, in 256 clocks
};
// A key has two numbers of a frame: how many instructions its last quarter took, in rows of 64, and
// how many the third, in eights. Every second row is backwards, so that neighbours are alike where
// a row ends, too. Other numbers that were tried bring no more envs together that are at the same
// places of the program:
// benchmarks/log/2026-11-26.md#envs-that-are-alike-in-the-same-warps-on-a-gpu-one-h100
constexpr int32_t kQuarterLines = 64;  // scanlines
constexpr int kOrderRows = 32, kOrderColumns = 256, kOrderKeys = kOrderRows * kOrderColumns;
CULE_INLINE uint32_t order_key(int32_t third, int32_t last) {
  const auto below = [](int32_t number, int32_t end) {
    return number < 0 ? 0 : number < end ? number : end - 1;
  };
  const int32_t row = below(last / 64, kOrderRows), column = below(third / 8, kOrderColumns);
  return static_cast<uint32_t>(row * kOrderColumns +
                               (row % 2 ? kOrderColumns - 1 - column : column));
}

struct Batch {
  int32_t num_envs;
  uint32_t buffer_capacity;  // of `buffers`
  uint32_t picture_bytes;    // of one picture: the tallest group's height * 160
  uint32_t num_groups;
  uint32_t num_players;      // who have rewards, of each env; 1 to kMaxPlayers
  uint32_t envs_per_pooled;  // how many share a pooled frame: 1; on a GPU, if frames are not kept,
                             // kEnvsPerPooled
  uint32_t keeps_pooled;     // whether pooled frames are kept from step to step
  uint32_t num_patches;      // of each env; 0: there are none
  int32_t sound_frames;      // how many frames' samples an env has, at least a step's; 0: no sound
  int32_t max_objects;       // of each env; 0: nobody asks for objects
  PowerOnRandom power_on;
  RecordLayout records;
  SpareBuffers spares;  // GPU only
  PlayOrder order;      // GPU only
  ResetPool boot;       // for the exact reset: one state of each group
  ResetPool pool;
  StepOptions options;
  ObservationFormat observation;
#define CULE_MEMBER(type, name, ...) type* name;
#define CULE_WITHIN_MEMBER(...)
  CULE_BATCH_ARRAYS(CULE_MEMBER, CULE_WITHIN_MEMBER)
#undef CULE_MEMBER
#undef CULE_WITHIN_MEMBER
};

// Whether observations show frames. They may be RAM or objects only: then none is made of pictures.
CULE_INLINE bool shows_frames(const Batch& batch) { return batch.observation.stack > 0; }

constexpr size_t kRecordWords = sizeof(EnvRecord) / 4;

CULE_INLINE const ConsoleConfig& config_of(const Batch& batch, size_t env) {
  return batch.configs[batch.group[env]];
}
// On a GPU: an env's own instruction buffer, and the entries of its last step.
CULE_INLINE uint32_t* own_buffer(const Batch& batch, size_t env) {
  return batch.buffers + env * batch.buffer_capacity;
}
CULE_INLINE const uint32_t* entries_of(const Batch& batch, size_t env) {
  const uint32_t spare = batch.traces[env].spare;
  const SpareBuffers& spares = batch.spares;
  return spare ? spares.entries + static_cast<size_t>(spare - 1) * spares.capacity
               : own_buffer(batch, env);
}

CULE_INLINE EpisodeStart start_of(const StepOptions& options) {
  return static_cast<EpisodeStart>(options.episode_start);
}
// Whether something is pressed after a lost life, too.
CULE_INLINE bool starts_lives(const StepOptions& options) {
  return start_of(options) != EpisodeStart::kAle && options.life_loss_info;
}

// What tells an env's random numbers from those of other envs with the same seed.
CULE_INLINE uint32_t stream_of(const Batch& batch, size_t env) {
  return batch.options.own_seeds ? 0 : static_cast<uint32_t>(env);
}

CULE_INLINE StickyActions sticky_actions_of(const Batch& batch, size_t env) {
  return {batch.options.repeat_action_probability,
          stream_of(batch, env),
          {batch.env_random ? batch.env_random + env : nullptr,
           static_cast<size_t>(batch.num_envs)}};
}

// Writes to the outputs what an env's state says after a step or a reset.
CULE_INLINE void report_state(const Batch& batch, size_t env, const EnvState& state) {
  batch.lives[env * batch.num_players] = state.lives;
  batch.frame_numbers[env] = state.frame_number;
  batch.episode_frame_numbers[env] = state.episode_frame_number;
  batch.faults[env] = static_cast<int32_t>(state.faults);
}

// With several players: writes the lives of the others.
template <class Index>
CULE_INLINE void report_other_lives(const Batch& batch, size_t env, Index game_index,
                                    const GameState& game) {
  for (uint32_t player = 1; player < batch.num_players; ++player) {
    batch.lives[env * batch.num_players + player] =
        other_player(game_index, game, static_cast<int>(player)).lives;
  }
}

}  // namespace cule
