// The simulated GPU, as CUDA's functions (runtime.cpp) and tests see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cuda_runtime.h"

namespace simulated {

constexpr size_t kMaxShared = 227 * 1024;  // bytes of a block, as an H100 has them

struct Settings {
  int multiprocessors = 2;
  uint64_t seed = 0;  // 0: threads take turns in their order; else by chance
  bool together = true;  // lanes at the same place are together; else in parts, by chance
};
Settings& settings();

// What a stream says of itself, as a test has it.
struct Stream {
  float milliseconds = 0.0f;  // what an event that is recorded now gets
  bool busy = false;          // what was launched has not ended
  bool captured = false;      // it is recorded for a graph
};
Stream& stream();

// Runs a kernel. Throws std::runtime_error with what it found wrong.
void run(const Kernel& kernel, dim3 blocks, unsigned threads, size_t shared_bytes,
         void** arguments);

// Where the variables in shared memory of the module are that `entry` is in, and how many bytes.
std::pair<char*, size_t> shared_variables_of(const void* entry);

}  // namespace simulated
