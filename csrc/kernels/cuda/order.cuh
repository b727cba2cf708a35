// Which envs share a warp and a multiprocessor of `play`: those that are alike.
//
// The lanes of a warp wait for lanes that are elsewhere in the program. Envs that executed about as
// many instructions in the last frame are likely to be at the same places in the next one. So envs
// are sorted by that (`keys`), and each block plays a part of the order. Envs that do much are
// together then, and a step is as long as its slowest block: so a block that took longer than
// others gets fewer envs in the next step.
//
// All orders give the same results.
#pragma once

#include "kernels/cuda/play.cuh"

namespace cule {

// Threads of `order_envs`, and the most blocks of `play` that it divides envs among.
constexpr int kOrderThreads = 1024;

struct Sum {
  static constexpr float kNone = 0.0f;
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Largest {
  static constexpr float kNone = 0.0f;  // of numbers that are not negative
  __device__ __forceinline__ float operator()(float a, float b) const { return a > b ? a : b; }
};

// All threads of a block call this. What `combine` makes of the values of this thread and of all
// threads before it. (CUDA's own library for that does not compile for the simulated GPU of
// tests/kernels.)
template <class Combine>
__device__ __forceinline__ float up_to_here(float value, float* room, const Combine& combine) {
  const int thread = static_cast<int>(threadIdx.x);
  room[thread] = value;
  __syncthreads();
  for (int distance = 1; distance < kOrderThreads; distance *= 2) {
    const float before = thread >= distance ? room[thread - distance] : Combine::kNone;
    __syncthreads();
    room[thread] = combine(room[thread], before);
    __syncthreads();
  }
  return room[thread];
}
// What `combine` makes of the values of all threads.
template <class Combine>
__device__ __forceinline__ float of_all(float value, float* room, const Combine& combine) {
  up_to_here(value, room, combine);
  const float all = room[kOrderThreads - 1];
  __syncthreads();
  return all;
}

// Says where each block's part of the order ends. Blocks hold at most `most` envs.
__device__ __forceinline__ void divide_order(const Batch& batch, int blocks, int most,
                                             float* room) {
  // A share goes back to an even one by kPull of the difference in each step. Else shares would
  // grow without end in games in which a block's time hardly depends on it.
  constexpr float kPull = 0.1f, kMostFaster = 3.0f;
  const int block = static_cast<int>(threadIdx.x);
  const bool is_block = block < blocks;
  const float envs = static_cast<float>(batch.num_envs);
  const float even = envs / static_cast<float>(blocks);

  const float clocks = is_block ? static_cast<float>(batch.order.clocks[block]) : 0.0f;
  const float mean = of_all(clocks, room, Sum{}) / static_cast<float>(blocks);
  float share = is_block ? batch.order.shares[block] : 0.0f;
  if (is_block && (share <= 0.0f || clocks <= 0.0f)) {
    share = even;  // its first step
  } else if (is_block) {
    const float faster = mean / clocks;
    share += kPull * (even - share);
    share *= 0.5f * (1.0f + (faster < kMostFaster ? faster : kMostFaster));
  }
  share *= envs / of_all(share, room, Sum{});
  // Rounded, the largest share must fit into a block.
  const float largest = of_all(share, room, Largest{});
  const float fits = static_cast<float>(most) - 1.0f;
  if (is_block && largest > fits) {
    share = even + (share - even) * (fits > even ? (fits - even) / (largest - even) : 0.0f);
  }
  const float until = up_to_here(share, room, Sum{});
  if (!is_block) return;
  batch.order.shares[block] = share;
  const int even_end = static_cast<int>((block + int64_t{1}) * batch.num_envs / blocks);
  const int end = fits > even ? static_cast<int>(until + 0.5f) : even_end;
  batch.order.ends[block] = block == blocks - 1 ? batch.num_envs : min(end, batch.num_envs);
}

// Sorts envs by their keys.
__device__ __forceinline__ void sort_by_keys(const Batch& batch, float* room, int* places) {
  constexpr int kEach = kOrderKeys / kOrderThreads;
  const int thread = static_cast<int>(threadIdx.x);
  const auto key_of = [&](int env) { return min(batch.order.keys[env], kOrderKeys - 1u); };
  for (int key = thread; key < kOrderKeys; key += kOrderThreads) places[key] = 0;
  __syncthreads();
  for (int env = thread; env < batch.num_envs; env += kOrderThreads) {
    atomicAdd(&places[key_of(env)], 1);
  }
  __syncthreads();
  int own = 0;
  for (int i = 0; i < kEach; ++i) own += places[thread * kEach + i];
  // Floats are exact here: there are fewer than 2^24 envs.
  int place = static_cast<int>(up_to_here(static_cast<float>(own), room, Sum{})) - own;
  for (int i = 0; i < kEach; ++i) {
    const int count = places[thread * kEach + i];
    places[thread * kEach + i] = place;
    place += count;
  }
  __syncthreads();
  for (int env = thread; env < batch.num_envs; env += kOrderThreads) {
    batch.order.envs[atomicAdd(&places[key_of(env)], 1)] = env;
  }
}

// One block of kOrderThreads. It prepares a launch of `play` in `blocks` blocks, each of which
// holds at most `most` envs.
__global__ void __launch_bounds__(kOrderThreads)
    order_envs(const __grid_constant__ Batch batch, int blocks, int most) {
  __shared__ float room[kOrderThreads];
  __shared__ int places[kOrderKeys];
  divide_order(batch, blocks, most, room);
  sort_by_keys(batch, room, places);
}

}  // namespace cule
