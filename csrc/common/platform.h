// The one place that knows which compiler is reading the core.
//
// Every other header is plain C++17 that compiles unchanged for the host and, marked with these macros, for
// CUDA devices. No other file may test __CUDACC__ or __CUDA_ARCH__.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// CULE_COLD marks what runs rarely, at least on a GPU: a function of its own on both, as a CPU's handlers and a GPU's loop are to be
// small.
// CULE_HANDLER marks one of many cases of a switch: a part of it, but where the build defines CULE_SANITIZED: instrumented, one
// function of them all would take a compiler minutes.
// CULE_INLINE_LAMBDA stands behind a lambda's parameters.
// CULE_ASSUME says what is always true, and CULE_CHECK does where the optimizer need not know. Where the build defines
// CULE_CHECK_ASSUMPTIONS, as tests do, the host stops if it is not.
// CULE_OPAQUE stands between a 32-bit variable and the optimizer, for ptxas 13.0: where conditions become bits of more than one byte
// of a word, it can put those of one byte into another.
// spread_signs makes each byte of a word 0 or $FF, by its highest bit.
// spread_bits makes each byte of a LineBits 0 or $FF, by one of the lowest bits of a word.
// reverse_byte reverses the bits of one byte.
// LineBits is the word that the machine computes a scanline's pixels in.
// Where the build defines CULE_SIMULATED_GPU, as tests/kernels does, the host has a GPU's LineBits.
#if defined(__CUDACC__)
#define CULE_HD __host__ __device__
#define CULE_INLINE __host__ __device__ __forceinline__
#define CULE_COLD __host__ __device__ __noinline__ inline
#define CULE_HANDLER CULE_INLINE
namespace cule { using LineBits = uint32_t; }
#else
#define CULE_HD
#define CULE_INLINE inline __attribute__((always_inline))
#define CULE_COLD inline __attribute__((noinline))
#if defined(CULE_SANITIZED)
#define CULE_HANDLER inline __attribute__((noinline))
#else
#define CULE_HANDLER CULE_INLINE
#endif
#if defined(CULE_SIMULATED_GPU)
namespace cule { using LineBits = uint32_t; }
#else
namespace cule { using LineBits = uint64_t; }
#endif
#endif
#define CULE_INLINE_LAMBDA __attribute__((always_inline))
#if defined(CULE_CHECK_ASSUMPTIONS) && !defined(__CUDA_ARCH__)
#define CULE_CHECK(condition) ((condition) ? static_cast<void>(0) : __builtin_trap())
#else
#define CULE_CHECK(condition) static_cast<void>(0)
#endif
#if defined(__CUDA_ARCH__)
#define CULE_ASSUME(condition) __builtin_assume(condition)
#define CULE_OPAQUE(word) asm("" : "+r"(word))
#else  // the host's pass of nvcc, too
#if defined(CULE_CHECK_ASSUMPTIONS)
#define CULE_ASSUME(condition) CULE_CHECK(condition)
#else
#define CULE_ASSUME(condition) ((condition) ? static_cast<void>(0) : __builtin_unreachable())
#endif
#define CULE_OPAQUE(word) static_cast<void>(0)
#endif

namespace cule {
CULE_INLINE uint32_t spread_signs(uint32_t word) {
#if defined(__CUDA_ARCH__)
  uint32_t spread;
  asm("prmt.b32 %0, %1, 0, 0xba98;" : "=r"(spread) : "r"(word));
  return spread;
#else
  return (word >> 7 & 0x01010101) * 0xFF;
#endif
}
CULE_INLINE uint32_t reverse_byte(uint32_t byte) {
#if defined(__CUDA_ARCH__)
  uint32_t reversed;
  asm("brev.b32 %0, %1;" : "=r"(reversed) : "r"(byte));
  return reversed >> 24;
#else
  // Five copies of the byte, of which each gives up to two bits that are then where they belong in one of five others.
  return static_cast<uint32_t>(((byte * 0x80200802ull & 0x0884422110ull) * 0x0101010101ull) >> 32 & 0xFF);
#endif
}

#if defined(__CUDACC__)
CULE_INLINE uint32_t spread_bits(uint32_t bits) { return spread_signs((bits & 0x0F) * (0x00204081u << 7)); }
#else
struct SpreadBytes {
  uint64_t of[256];
};
constexpr SpreadBytes spread_bytes() {
  SpreadBytes table{};
  for (int byte = 0; byte < 256; ++byte) {
    for (int bit = 0; bit < 8; ++bit) table.of[byte] |= uint64_t(byte >> bit & 1 ? 0xFF : 0) << 8 * bit;
  }
  return table;
}
inline constexpr SpreadBytes kSpreadBytes = spread_bytes();
CULE_INLINE uint64_t spread_bits(uint32_t bits) { return kSpreadBytes.of[bits & 0xFF]; }
#endif
}  // namespace cule
