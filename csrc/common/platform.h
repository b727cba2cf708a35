// The one place that knows which compiler is reading the core.
//
// Every other header is plain C++17 that compiles unchanged for the host and, marked with these macros, for
// CUDA devices. No other file may test __CUDACC__ or __CUDA_ARCH__.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define CULE_HD __host__ __device__
#define CULE_INLINE __host__ __device__ __forceinline__
#define CULE_NOINLINE __host__ __device__ __noinline__
#else
#define CULE_HD
#define CULE_INLINE inline __attribute__((always_inline))
#define CULE_NOINLINE __attribute__((noinline))
#endif

namespace cule {

// The number of zeros below the lowest set bit of `word`, which must not be zero.
CULE_INLINE int count_trailing_zeros(uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(word)) - 1;
#else
  return __builtin_ctzll(word);
#endif
}

}  // namespace cule
