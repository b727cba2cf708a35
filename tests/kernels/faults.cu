// Kernels for test_simulator.py. Some have a fault, which the simulator must find. The others test
// functions that the lanes of a warp call together.
#include "simulator.h"

#include "kernels/cuda/reductions.cuh"

// In this namespace, because the simulator's dynamic shared memory is in it.
namespace cule {

constexpr int kThreads = 64;

static __global__ void reverse(int* values, bool with_barrier) {
  __shared__ int kept[kThreads];
  kept[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncthreads();
  values[threadIdx.x] = kept[kThreads - 1 - threadIdx.x];
}

static __global__ void count_from_garbage(int* values) {
  __shared__ int count;
  atomicAdd(&count, 1);
  __syncthreads();
  values[threadIdx.x] = count;
}

static __global__ void overrun(int* values, int words) {
  extern __shared__ uint4 shared_words[];
  int* shared = reinterpret_cast<int*>(shared_words);
  shared[words + static_cast<int>(threadIdx.x)] = 0;
  values[threadIdx.x] = 0;
}

static __global__ void part_at_a_barrier(int*) {
  if (threadIdx.x % 2) __syncwarp(~0u);
  else __syncthreads();
}

static __global__ void wait_for_nobody(int* values) {
  const volatile int* flag = values;
  while (*flag == 0) __nanosleep(100);
}

static __global__ void leave_own_lane_out(int*) { __syncwarp(~0u << 1); }

static __global__ void vote(int* values) {
  const unsigned half = threadIdx.x % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  values[threadIdx.x] = static_cast<int>(__ballot_sync(half, threadIdx.x % 3 == 0)) +
                        __any_sync(half, threadIdx.x == 40);
}

// Finds the least word of each half of a warp.
static __global__ void find_least(int* values, bool by_votes) {
  const unsigned half = threadIdx.x % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  const unsigned word = static_cast<unsigned>(values[threadIdx.x]);
  const unsigned least = by_votes ? least_by_votes(half, word) : __reduce_min_sync(half, word);
  values[threadIdx.x] = static_cast<int>(least);
}

// Which lanes of each half of a warp have the same value.
static __global__ void match(int* values) {
  const unsigned half = threadIdx.x % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  values[threadIdx.x] =
      static_cast<int>(__match_any_sync(half, static_cast<unsigned>(values[threadIdx.x])));
}

static __global__ void see_who_is_here(int* values) {
  if (threadIdx.x % 2) values[threadIdx.x] = static_cast<int>(~__activemask());
  else values[threadIdx.x] = static_cast<int>(__activemask());
}

template <class... Parameters, class... Arguments>
static int run(void (*kernel)(Parameters...), int threads, size_t shared_bytes,
               Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = 2;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  cudaLaunchKernelEx(&config, kernel, arguments...);
  return cudaGetLastError();
}

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void set_device(uint64_t seed, bool together) {
  simulated::settings() = {1, seed, together};
}
EXPORTED const char* what_happened() { return cudaGetErrorString(cudaErrorLaunchFailure); }

// These run a kernel on `values`, which has kThreads elements, and return CUDA's error number.
EXPORTED int run_reverse(int* values, bool with_barrier) {
  return run(reverse, kThreads, 0, values, with_barrier);
}
EXPORTED int run_count_from_garbage(int* values) {
  return run(count_from_garbage, kThreads, 0, values);
}
EXPORTED int run_overrun(int* values, int words) {
  return run(overrun, kThreads, 4 * kThreads, values, words);
}
EXPORTED int run_part_at_a_barrier(int* values) {
  return run(part_at_a_barrier, kThreads, 0, values);
}
EXPORTED int run_wait_for_nobody(int* values) { return run(wait_for_nobody, kThreads, 0, values); }
EXPORTED int run_leave_own_lane_out(int* values) {
  return run(leave_own_lane_out, kThreads, 0, values);
}
EXPORTED int run_vote(int* values) { return run(vote, kThreads, 0, values); }
EXPORTED int run_find_least(int* values, bool by_votes) {
  return run(find_least, kThreads, 0, values, by_votes);
}
EXPORTED int run_match(int* values) { return run(match, kThreads, 0, values); }
EXPORTED int run_see_who_is_here(int* values) { return run(see_who_is_here, kThreads, 0, values); }
EXPORTED int run_with(int* values, int threads, int shared_bytes) {
  return run(vote, threads, static_cast<size_t>(shared_bytes), values);
}

}  // namespace cule
