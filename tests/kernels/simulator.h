// The simulated GPU's interface for CUDA's functions (runtime.cpp) and for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cuda_runtime.h"

namespace simulated {

constexpr size_t kMaxShared = 227 * 1024;  // bytes of shared memory of a block, as on an H100

struct Settings {
  int multiprocessors = 2;
  uint64_t seed = 0;     // 0: threads run in their order; else in a random one
  bool together = true;  // lanes at the same place are together; else they are divided at random
};
Settings& settings();

// The state of all streams, which a test sets.
struct Stream {
  float milliseconds = 0.0f;  // the time of an event that is recorded now
  bool busy = false;          // launched work has not ended
  bool captured = false;      // a graph captures the stream
};
Stream& stream();

// How many envs a warp had when a translated game was played last.
int& lanes_played();

// Runs a kernel. Throws std::runtime_error with a description of the first fault.
void run(const Kernel& kernel, dim3 blocks, unsigned threads, size_t shared_bytes,
         void** arguments);

// The shared variables of the library that has the kernel `entry`: their address and size in bytes.
std::pair<char*, size_t> shared_variables_of(const void* entry);

}  // namespace simulated
