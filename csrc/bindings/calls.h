// A call of a step or a reset by a compiled program, such as XLA's. The handler that makes it
// (cule/adapters/jax/handler.cpp) is compiled apart from the core, with this header: all are plain
// structs and one function, so that their compilers need not agree on anything else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cule {

struct CallBuffer {
  void* data;
  uint64_t bytes;
};

struct PortCall {
  uint64_t port;      // its number (bindings/port.h)
  uint32_t steps;     // whether it is a step; else a reset
  uint32_t seeds;     // whether a reset has seeds
  uint32_t masks;     // whether a reset has a mask
  int32_t device;     // the GPU's number; -1: a CPU
  void* stream;       // of the GPU
  const CallBuffer* in;
  uint64_t num_in;
  const CallBuffer* out;
  uint64_t num_out;
};

// The size of the text that says what went wrong, with its final 0.
constexpr size_t kProblemBytes = 512;
// Plays a call. Returns whether it was played; if not, `problem` says why.
using PlayCall = bool (*)(const PortCall& call, char* problem);

}  // namespace cule
