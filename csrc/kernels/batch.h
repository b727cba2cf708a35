// A batch of envs as the kernels see it: pointers into memory that the caller owns, and the options
// of a step.
//
// Both backends use the same struct. On a GPU every pointer is a device pointer, and the struct is
// a kernel parameter. [n] is num_envs.
#pragma once

#include "console/session.h"
#include "tia/pictures.h"

namespace cule {

enum class AutoresetMode : uint32_t { kNextStep, kSameStep, kDisabled };

struct StepOptions {
  int32_t frameskip;
  int32_t max_frames;  // of an episode, after its no-ops
  int32_t noop_max;
  uint32_t maxpool;
  uint32_t episodic_life;
  uint32_t life_loss_info;
  uint32_t reward_clipping;
  uint32_t fire_reset;
  AutoresetMode autoreset;
  float repeat_action_probability;
};

// How a picture becomes an observation. For each output row or column, `rows` and `columns` list
// the first source line, how many lines there are, and where their weights begin.
struct ResampleSpan {
  int32_t first, count, weight;
};
// If a size is above the picture's on either axis, pixels are interpolated (kLinear). The weights
// are then integers from 0 to 2048.
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

// States from which episodes start, `size` for each group. They have the same fields as an env;
// slot = group * size + i.
struct ResetPool {
  int32_t size;  // 0: every reset is emulated
  const uint32_t* records;         // [groups * size][record words]
  const uint8_t* ram;              // [groups * size][128]
  const uint8_t* cartridge_bytes;  // [groups * size][128]
  const uint8_t* pictures;         // [groups * size][2][picture_bytes]
};

// What a step's CPU part tells the parts after it, for each env.
struct StepTrace {
  uint32_t entries;      // in the instruction buffer
  uint32_t after_clear;  // see InstructionBuffer
  uint32_t frames;       // emulated
  uint32_t flags;        // TraceFlag
  uint32_t latches_read;  // the collision latches that the program has looked at
  uint32_t spare;  // the number of the spare buffer with the entries, from 1 on; 0: the env's own
};
enum TraceFlag : uint32_t {
  // A frame left lines undrawn, so that those of earlier frames of this step show.
  kPictureBroken = 1,
  kPoolBoth = 2,  // the observation comes from the last two pictures
  kPoolLast = 4,  // from the last picture alone
  // From the last observation's frame and the last picture but one: the episode ended between.
  kPoolBackOntoOld = 8,
  kResetNow = 16,  // the env is to be reset in this call
  kFresh = 32,     // the observation begins an episode: older frames are black
  // The last frame went on in the picture of the one before, which the instruction limit cut off.
  kLastResumed = 64,
  kFrontTurned = 128,  // an odd number of pictures were begun, so another one is in front now
  kLinesLeft = 256,    // a frame was not drawn from first line to last: older ones may show
};

constexpr uint32_t kEnvsPerPooled = 96;

struct Batch {
  int32_t num_envs;
  uint32_t buffer_capacity;  // of `buffers`
  uint32_t picture_bytes;  // of one picture: the tallest group's height * 160
  uint32_t num_groups;
  uint32_t envs_per_pooled;  // 1, or kEnvsPerPooled on a GPU that does not keep them
  uint32_t keeps_pooled;     // whether pooled frames are kept from step to step
  const uint32_t* group;   // [n]
  const ConsoleConfig* configs;
  const uint8_t* action_ids;  // [groups][18]
  const uint8_t* roms;
  const MicroOp* micro_ops;   // as many as `roms` has bytes: the instruction that begins at each
  const MicroOp* operations;  // [256]
  const MicroOp* marked_ops;  // of the translated kernel that is launched (console/block.h)
  PowerOnRandom power_on;
  // State.
  RecordLayout records;
  uint8_t* ram;              // [n][128]
  uint8_t* cartridge_bytes;  // [n][128]
  uint8_t* pictures;         // [n][2][picture_bytes]: rows, which row_of puts in order
  uint8_t* row_of;           // [n][2][Pictures::kRows]: the row that each scanline shows
  // [n / envs_per_pooled][picture_bytes][channels]: the frame that an observation is made of, if it
  // is made of more than the two pictures. With `keeps_pooled` each env has one, and if
  // TiaState::observed is 0, it is what the newest observation shows. Without, it lasts no longer
  // than a step.
  uint8_t* pooled;
  uint32_t* buffers;         // GPU only: [n][buffer_capacity]; on a CPU each thread has one
  SpareBuffers spares;       // GPU only
  StepTrace* traces;         // [n]
  uint32_t* segments;        // GPU only: see segment_starts.h
  uint32_t* noop_random;     // Mt19937 words, [625][n]; null with a pool
  uint32_t* env_random;      // the same, for the one game that needs it; else null
  // Boot states, for the exact reset: [groups], fields as in ResetPool.
  ResetPool boot;
  ResetPool pool;
  StepOptions options;
  ObservationFormat observation;
  // Inputs and outputs.
  const int32_t* actions;      // [n] index into the group's actions
  const float* strengths;      // [n] paddle strength; null: 1
  const int32_t* actions_b;    // [n] player B's action (0 to 17); null: no-op
  const float* strengths_b;
  uint8_t* observations;       // [n][stack][height][width][channels]
  uint8_t* final_observations; // the same; null unless SAME_STEP
  int32_t* rewards;            // [n]
  int32_t* raw_rewards;        // [n] before clipping
  uint8_t* terminated;         // [n]
  uint8_t* truncated;          // [n]
  int32_t* lives;              // [n]
  int32_t* frame_numbers;      // [n]
  int32_t* episode_frame_numbers;  // [n]
  int32_t* faults;             // [n]
};

constexpr size_t kRecordWords = sizeof(EnvRecord) / 4;

CULE_INLINE const ConsoleConfig& config_of(const Batch& batch, size_t env) {
  return batch.configs[batch.group[env]];
}
CULE_INLINE Pictures pictures_of(const Batch& batch, size_t env) {
  return {batch.pictures + env * 2 * batch.picture_bytes, batch.picture_bytes,
          batch.row_of + env * 2 * Pictures::kRows};
}

// An env's own instruction buffer, on a GPU, and where its last step's entries are.
CULE_INLINE uint32_t* own_buffer(const Batch& batch, size_t env) {
  return batch.buffers + env * batch.buffer_capacity;
}
CULE_INLINE const uint32_t* entries_of(const Batch& batch, size_t env) {
  const uint32_t spare = batch.traces[env].spare;
  const SpareBuffers& spares = batch.spares;
  return spare ? spares.entries + static_cast<size_t>(spare - 1) * spares.capacity
               : own_buffer(batch, env);
}

CULE_INLINE Mt19937 env_random_of(const Batch& batch, size_t env) {
  return {batch.env_random ? batch.env_random + env : nullptr, static_cast<size_t>(batch.num_envs)};
}

}  // namespace cule
