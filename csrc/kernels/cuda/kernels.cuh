// The kernels of a step, which cuda_backend.cu launches: each does one phase for all envs.
#pragma once

#include "kernels/cuda/play.cuh"
#include "kernels/draw.h"
#include "kernels/mend.h"
#include "kernels/observe/pool.h"
#include "kernels/observe/stack.h"
#include "kernels/observe/window.h"
#include "kernels/reset.h"
#include "kernels/see.h"

namespace cule {

constexpr int kThreads = 128;
static_assert(kMaxEnvsApart == kPlayMaxThreads);
static_assert(kEnvsPerPooled <= kThreads);  // a thread of `pool` looks at one env
// Blocks of `segments` that run on a multiprocessor at once. This leaves 96 registers a thread.
// With six blocks, some of a thread's values would have to be in memory.
constexpr int kDrawBlocks = 5;

template <bool kInStep, bool kSound>
__global__ void __launch_bounds__(kPlayMaxThreads)
    play(const __grid_constant__ Batch batch, int lanes, int warps) {
  play_envs<kInStep, kSound>(batch, lanes, warps, DynamicCore{}, nullptr);
}

// Two kinds of Lanes (kernels/lanes.h): the threads of a warp, and those of a block of kThreads.
struct WarpLanes {
  static constexpr int kCount = kWarp;
  __device__ __forceinline__ int lane() const { return threadIdx.x % kWarp; }
  __device__ __forceinline__ void sync() const { __syncwarp(); }
  __device__ __forceinline__ uint32_t ballot(bool condition) const {
    return __ballot_sync(~0u, condition);
  }
  __device__ __forceinline__ uint32_t alike(int value) const {
    return __match_any_sync(~0u, value);
  }
};
struct BlockLanes {
  static constexpr int kCount = kThreads;
  __device__ __forceinline__ int lane() const { return threadIdx.x; }
  __device__ __forceinline__ void sync() const { __syncthreads(); }
};

// Makes the samples of a step's sound; a warp for each env, of which two lanes play a channel each.
__global__ void __launch_bounds__(kThreads) hear_envs(const __grid_constant__ Batch batch) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ SoundBits loud[kWarps][kSoundChannels];
  const int warp = threadIdx.x / kWarp, env = blockIdx.x * kWarps + warp;
  if (env < batch.num_envs) hear(batch, static_cast<size_t>(env), loud[warp], WarpLanes{});
}

// Whether an env is left to the kernel `pool`. The other kernels then skip it.
__device__ __forceinline__ bool is_pooled(const Batch& batch, size_t env) {
  return needs_pooled(batch.traces[env].plan);
}

__device__ __forceinline__ void add_collisions(const Batch& batch, size_t env, uint32_t found) {
  if (found) atomicOr(&latch_word(batch, env), found);
}

__global__ void __launch_bounds__(kThreads, kDrawBlocks)
    segments(const __grid_constant__ Batch batch) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x, env = min(thread, batch.num_envs - 1);
  const uint32_t slot = blockIdx.z * kSegments + blockIdx.y;
  const Recording recording{entries_of(batch, static_cast<size_t>(env)), starts_of_env(batch, env)};
  using Room = LineRoom<LineBits>;
  // The same word of neighbouring threads is at neighbouring places, so their banks differ.
  __shared__ LineBits words[Room::kSize * kThreads];
  __shared__ Canvases<kWarp> canvases[kThreads / kWarp];
  const Room room{words + threadIdx.x, kThreads};
  const uint32_t found = draw_in_warp(batch, env, env == thread, recording, slot, room,
                                      canvases[threadIdx.x / kWarp], WarpLanes{});
  add_collisions(batch, static_cast<size_t>(env), found);
}

// Resizes one warp's share of the rows of an env's newest observation.
template <int kChannels, int kMax>
__device__ __forceinline__ void resample_band(const Batch& batch, size_t env,
                                              const FrameSource& source,
                                              const SharedPalette<kChannels>& palette,
                                              Window<kChannels>& window) {
  constexpr int kWarps = kThreads / kWarp;
  const ObservationFormat& format = batch.observation;
  const int warp = threadIdx.x / kWarp, rows = (format.height + kWarps - 1) / kWarps;
  const int begin = warp * rows, end = min(begin + rows, format.height);
  const Resample resample = format.resamples[batch.group[env]];
  resample_rows<kChannels, kMax>(format, resample, source, palette, begin, end,
                                  newest_frame(batch, env), window, WarpLanes{});
}

// Copies a state of the pool over each env that starts a game; a block for each env.
__global__ void __launch_bounds__(kThreads, 8)
    restart_from_pool(const __grid_constant__ Batch batch, const int64_t* seeds) {
  const size_t env = blockIdx.x;
  if (!restarts_from_pool(batch, env)) return;
  __shared__ size_t slot;
  if (threadIdx.x == 0) slot = restart_record(batch, env, seeds ? seeds[env] : kNoSeed);
  __syncthreads();
  const uint4* from = reinterpret_cast<const uint4*>(batch.pool.pictures +
                                                     slot * 2 * batch.picture_bytes);
  const Pictures pictures = pictures_of(batch, env);
  uint4* to = reinterpret_cast<uint4*>(pictures.pixels);
  for (uint32_t i = threadIdx.x; i < 2 * batch.picture_bytes / sizeof(uint4); i += kThreads)
    to[i] = from[i];
  own_rows(pictures, BlockLanes{});
  if (hears(batch)) copy_sound_from(batch, env, batch.pool, slot, BlockLanes{});
  if (sees(batch)) copy_boxes_from(batch, env, batch.pool, slot, BlockLanes{});
}

// Writes down the runs of a step's last two frames; a thread for each of their segments.
__global__ void __launch_bounds__(kThreads, 5) find_runs(const __grid_constant__ Batch batch) {
  using Room = LineRoom<LineBits>;
  __shared__ LineBits words[Room::kSize * kThreads];
  const size_t env = blockIdx.x * size_t{kThreads} + threadIdx.x;
  if (env >= static_cast<size_t>(batch.num_envs)) return;
  const Recording recording{entries_of(batch, env), starts_of_env(batch, env)};
  write_runs(batch, env, recording, blockIdx.z, blockIdx.y, Room{words + threadIdx.x, kThreads});
}

// Joins those that have changed to the boxes of their segment; a warp for each segment, and then
// for others.
constexpr int kFindBoxesBlocks = 7;  // on a multiprocessor at once, by their shared memory
__global__ void __launch_bounds__(kThreads, kFindBoxesBlocks)
    find_boxes(const __grid_constant__ Batch batch) {
  constexpr uint32_t kWarps = kThreads / kWarp;
  __shared__ SegmentRoom rooms[kWarps];
  const uint32_t warp = threadIdx.x / kWarp;
  join_runs(batch, blockIdx.x * kWarps + warp, gridDim.x * kWarps, rooms[warp], WarpLanes{});
}

// Joins boxes of the segments; a warp for each env and frame.
__global__ void __launch_bounds__(kThreads) join_boxes(const __grid_constant__ Batch batch) {
  __shared__ FrameRoom rooms[kThreads / kWarp];
  const size_t warp = threadIdx.x / kWarp, part = blockIdx.x * size_t{kThreads / kWarp} + warp;
  if (part >= kSeenFrames * static_cast<size_t>(batch.num_envs)) return;
  join_segments(batch, part / kSeenFrames, static_cast<uint32_t>(part % kSeenFrames), rooms[warp],
                WarpLanes{});
}

// Finds the boxes of the few frames of which that has failed; a thread for each env and frame.
__global__ void __launch_bounds__(kWarp) find_boxes_again(const __grid_constant__ Batch batch) {
  const size_t part = blockIdx.x * size_t{kWarp} + threadIdx.x, env = part / kSeenFrames;
  if (env >= static_cast<size_t>(batch.num_envs)) return;
  const Recording recording{entries_of(batch, env), starts_of_env(batch, env)};
  see_again(batch, env, recording, static_cast<uint32_t>(part % kSeenFrames));
}

// Lists the objects of each env, or with `only_starts` of those that begin an episode; a warp for
// each env.
__global__ void __launch_bounds__(kThreads)
    list_all_objects(const __grid_constant__ Batch batch, bool only_starts) {
  const size_t env = blockIdx.x * size_t{kThreads / kWarp} + threadIdx.x / kWarp;
  if (env >= static_cast<size_t>(batch.num_envs)) return;
  if (only_starts && batch.traces[env].restart == Restart::kNone) return;
  list_objects(batch, env, WarpLanes{});
}

// Emulates the start of an episode for each env that starts one without the pool; a thread for each
// env.
__global__ void __launch_bounds__(kWarp, 10)
    restart_by_emulation(const __grid_constant__ Batch batch, const int64_t* seeds) {
  const size_t env = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (env >= static_cast<size_t>(batch.num_envs)) return;
  if (batch.traces[env].restart == Restart::kNone || restarts_from_pool(batch, env)) return;
  TiaState tia;
  TiaTrail trail;
  trail.starts = starts_of_env(batch, env);
  trail.spares = batch.spares;
  SoundState unheard;
  const Workplace place{own_buffer(batch, env), trail, tia, unheard};
  emulate_restart(batch, env, seeds ? seeds[env] : kNoSeed, DynamicCore{}, place);
}

__global__ void __launch_bounds__(kThreads) mend_states(const __grid_constant__ Batch batch) {
  const int env = blockIdx.x * blockDim.x + threadIdx.x;
  if (env < batch.num_envs) mend_state(batch, static_cast<size_t>(env));
}

__global__ void __launch_bounds__(kThreads)
    choose_resets(const __grid_constant__ Batch batch, const uint8_t* mask) {
  const int env = blockIdx.x * blockDim.x + threadIdx.x;
  if (env < batch.num_envs) choose_reset(batch, static_cast<size_t>(env), mask);
}

__global__ void __launch_bounds__(kThreads)
    keep_final(const __grid_constant__ Batch batch, size_t bytes) {
  const size_t env = blockIdx.x;
  if (!(batch.terminated[env] || batch.truncated[env])) return;
  const uint8_t* from = batch.observations + env * bytes;
  uint8_t* to = batch.final_observations + env * bytes;
  for (size_t i = blockIdx.y * blockDim.x + threadIdx.x; i < bytes; i += gridDim.y * blockDim.x)
    to[i] = from[i];
  if (blockIdx.y != 0) return;
  for (size_t i = threadIdx.x; hears(batch) && i < sound_bytes(batch); i += blockDim.x)
    final_sounds_of(batch, env)[i] = sounds_of(batch, env)[i];
  for (size_t i = threadIdx.x; i < object_numbers(batch); i += blockDim.x)
    final_objects_of(batch, env)[i] = objects_of(batch, env)[i];
}

// Of the envs of a block, at most `kMost`, those for which there is something to do: a few in
// thousands. Each thread looks at one env. Then all threads work together on each env that was
// found.
template <int kMost>
struct EnvsFound {
  int count;
  int envs[kMost];

  // All threads call `body(env)` for each env for which `wanted(env)` is true. A block has `each`
  // envs.
  template <class Wanted, class Body>
  __device__ __forceinline__ void for_each(const Batch& batch, int each, const Wanted& wanted,
                                           const Body& body) {
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const int thread = threadIdx.x, env = blockIdx.x * each + thread;
    if (thread < each && env < batch.num_envs && wanted(env)) envs[atomicAdd(&count, 1)] = env;
    __syncthreads();
    for (int i = 0; i < count; ++i) body(static_cast<size_t>(envs[i]));
  }
};

// Saves what drawing would lose, and writes the end of the step to the records. For its own envs
// the kernel `pool` does this.
__global__ void __launch_bounds__(kThreads, 9) prepare(const __grid_constant__ Batch batch) {
  __shared__ EnvsFound<kThreads> found;
  const auto wanted = [&](size_t env) CULE_INLINE_LAMBDA {
    return !is_pooled(batch, env) && must_save(batch, env, batch.traces[env]);
  };
  found.for_each(batch, kThreads, wanted,
                 [&](size_t env) CULE_INLINE_LAMBDA { save_pictures(batch, env, BlockLanes{}); });
  __syncthreads();
  const size_t env = blockIdx.x * size_t{kThreads} + threadIdx.x;
  if (env < static_cast<size_t>(batch.num_envs) && !is_pooled(batch, env)) {
    store_step_end(batch, env, starts_of_env(batch, env));
  }
}

// How many envs a block of `pool` has.
__host__ __device__ inline int pooled_by_a_block(const Batch& batch) {
  return pools_several(batch.options) ? 1 : static_cast<int>(kEnvsPerPooled);
}

// Does the rest of a step for the envs whose observation is made of more than the two pictures. A
// block does one env after the other, because its envs may share one frame in Batch::pooled. One
// such env takes longer than drawing all other envs. If all envs are such, each has a block.
template <int kChannels, int kMax>
__global__ void __launch_bounds__(kThreads) pool(const __grid_constant__ Batch batch) {
  constexpr int kWarps = kThreads / kWarp;
  using Room = LineRoom<LineBits>;
  __shared__ EnvsFound<kEnvsPerPooled> found;
  // First a frame is drawn, then it is resized. The two use the same shared memory.
  struct Resizing {
    Window<kChannels> windows[kWarps];
    SharedPalette<kChannels> palette;
  };
  __shared__ union {
    LineBits words[Room::kSize * kThreads];
    Resizing resizing;
  } shared;
  const BlockLanes lanes;
  const auto wanted = [&](size_t env) CULE_INLINE_LAMBDA { return is_pooled(batch, env); };
  found.for_each(batch, pooled_by_a_block(batch), wanted, [&](size_t env) CULE_INLINE_LAMBDA {
    const StepTrace& trace = batch.traces[env];
    const Recording recording{entries_of(batch, env), starts_of_env(batch, env)};
    save_pictures(batch, env, lanes);
    lanes.sync();
    if (threadIdx.x == 0) store_step_end(batch, env, recording.starts);
    lanes.sync();
    uint32_t collisions = 0;
    for (size_t slot = threadIdx.x; slot < trace.frames * size_t{kSegments}; slot += kThreads) {
      const Part part = part_of(trace, recording.starts, slot);
      collisions |= draw_rare_part(batch, env, recording, part, slot, 1,
                                   Room{shared.words + threadIdx.x, kThreads});
    }
    add_collisions(batch, env, collisions);
    lanes.sync();
    shared.resizing.palette.load(palette_of(batch, config_of(batch, env)), lanes);
    pool_frame(batch, env, trace.plan, picture_pair(batch, env), lanes);
    shift_stack(batch, env, trace.plan, lanes);
    lanes.sync();
    Resizing& resizing = shared.resizing;
    resample_band<kChannels, kMax>(batch, env, frame_source(batch, env, trace.plan),
                                    resizing.palette, resizing.windows[threadIdx.x / kWarp]);
    if (threadIdx.x == 0) screen_of(batch, env).shown = shown_by(trace.plan);
    lanes.sync();
  });
}

// Makes an env's new observation; a block for each env. It moves the stack on by one frame and puts
// the newest at its end. Each warp resizes a share of its rows. With `only_starts`, only envs that
// begin an episode get one. Envs of `pool` have theirs already.
template <int kChannels, int kMax>
__global__ void __launch_bounds__(kThreads, kChannels == 1 ? 7 : 4)
    observe_envs(const __grid_constant__ Batch batch, bool only_starts) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ Window<kChannels> windows[kWarps];
  __shared__ SharedPalette<kChannels> palette;
  constexpr int kRowWords = Pictures::kRows / 4;
  __shared__ uint32_t row_of[2][kRowWords];
  const size_t env = blockIdx.x;
  const ObservationPlan plan = batch.traces[env].plan;
  const bool wanted = !only_starts || batch.traces[env].restart != Restart::kNone;
  if (needs_pooled(plan) || !wanted) return;
  if (adds_frame(plan)) {
    const PicturePair pictures = frame_source(batch, env, plan).pictures;
    for_each_item<2 * kRowWords / kThreads>(BlockLanes{}, 2 * kRowWords, [&](int, int i) {
      const uint8_t* rows = i < kRowWords ? pictures.front.row_of : pictures.back.row_of;
      row_of[i / kRowWords][i % kRowWords] = reinterpret_cast<const uint32_t*>(rows)[i % kRowWords];
    });
    palette.load(palette_of(batch, config_of(batch, env)), BlockLanes{});
  }
  shift_stack(batch, env, plan, BlockLanes{});
  if (!adds_frame(plan)) return;
  FrameSource source = frame_source(batch, env, plan);
  source.pooled = nullptr;
  source.pictures.front.row_of = reinterpret_cast<const uint8_t*>(row_of[0]);
  source.pictures.back.row_of = reinterpret_cast<const uint8_t*>(row_of[1]);
  __syncthreads();
  resample_band<kChannels, kMax>(batch, env, source, palette, windows[threadIdx.x / kWarp]);
  if (threadIdx.x == 0) screen_of(batch, env).shown = shown_by(plan);
}

// After observe_envs: fills the stack of each env that wants it; a block for each env.
__global__ void __launch_bounds__(kThreads) fill_stacks(const __grid_constant__ Batch batch) {
  const size_t env = blockIdx.x;
  if (fills_stack(batch, batch.traces[env].plan)) fill_stack(batch, env, BlockLanes{});
}

}  // namespace cule
