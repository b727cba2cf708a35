// The only file that knows which compiler reads the core.
//
// Every other header is plain C++17 that uses these macros. It compiles unchanged for the host and
// for CUDA devices. No other file may test __CUDACC__ or __CUDA_ARCH__.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if !defined(__CUDACC__) && defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

// CULE_COLD marks code that runs rarely, at least on a GPU. The code is never inlined. This keeps
//   a CPU's handlers and a GPU's loop small.
// CULE_TAIL_CALL comes before the return of a function's result. The compiler then makes the call a
//   jump. Compilers without such an attribute do so too when they optimize.
// CULE_INLINE_LAMBDA comes after a lambda's parameters.
// CULE_VECTORS names the header with the vector instructions of the CPU that is compiled for.
// CULE_SYSTEM names the header with what the bindings ask the operating system for.
// CULE_WHOLE_AVX512 is added to the features of a function that uses AVX-512, so that the compiler
//   takes vectors of 512 bits. With GCC's defaults it would take 256.
// CULE_ASSUME tells the optimizer that a condition is always true. CULE_CHECK states the condition
//   without telling the optimizer. If the build defines CULE_CHECK_ASSUMPTIONS, as tests do, a host
//   program stops when either condition is false.
// CULE_OPAQUE hides a 32-bit variable from the optimizer. It works around a fault of ptxas 13.0: if
//   conditions become bits of more than one byte of a word, ptxas can put the bits of one byte into
//   another.
// CULE_OPAQUE_POINTER does the same for a pointer to global memory. The compiler then keeps the
//   pointer and does not compute it again at each use.
// CULE_APART keeps the code of a rare path separate. Without it, a GPU's compiler can take
//   assignments that several rare paths share, and move them before the branches to these paths.
//   The frequent path then executes them too.
// kSearchesLate says whether searches for collisions are put off until a program reads the latches.
// kStoresAhead says whether a store that may turn out unnecessary is faster than a branch.
// CULE_FOR_AVX2 marks a function that is compiled for x86-64 processors with AVX2. has_avx2() says
//   whether this processor is one. Elsewhere it is never called.
// CULE_SHUFFLE makes a vector of the bytes of `vector` with the numbers that follow.
// pin_thread lets a thread (std::thread::native_handle) run on one CPU only. Returns whether it
//   does.
// pick_bytes takes four bytes from two words. Each of the selector's lowest four nibbles is the
//   number of a byte: 0 to 3 are in `low`, 4 to 7 in `high`.
// spread_signs replaces each byte of a word by copies of its highest bit: 0 or $FF.
// spread_bits makes a byte of each of the lowest bits of a word: 0 or $FF. The bytes fill a
//   LineBits.
// reverse_byte reverses the bits of one byte.
// count_bits counts the bits of a word that are set.
// first_bit is the number of the lowest bit that is set, of a word that is not 0.
// take_number takes the next number from a counter that threads share.
// Of a word that threads share, replace_if replaces a value by another one, and returns what was
//   there; lower_to and raise_to write a number if it is less or more than what is there; and
//   set_bits sets bits.
// greater_bytes compares two words byte by byte, and takes the greater byte of each pair.
// bytes_from takes the four bytes that begin at byte `first` % 4 of two consecutive words.
// weigh_byte is byte i of a word times weight / 2^100 times 2^-49, rounded once. An integer's bits,
//   read as a float, are the integer times 2^-149. A GPU multiplies such a float as fast as any
//   other.
// ByteTable looks bytes up in a table of 256 bytes, which a GPU has in its shared memory. The table
//   begins at a multiple of 256.
#if defined(__CUDACC__)
#define CULE_HD __host__ __device__
#define CULE_INLINE __host__ __device__ __forceinline__
#define CULE_COLD __host__ __device__ __noinline__ inline
namespace cule { using LineBits = uint32_t; }
#else
#define CULE_HD
#define CULE_INLINE inline __attribute__((always_inline))
#define CULE_COLD inline __attribute__((noinline))
#if defined(CULE_SIMULATED_GPU)
namespace cule { using LineBits = uint32_t; }
#else
namespace cule { using LineBits = uint64_t; }
#endif
#endif
#if defined(__clang__)
#define CULE_TAIL_CALL [[clang::musttail]]
#elif defined(__GNUC__) && __GNUC__ >= 15
#define CULE_TAIL_CALL [[gnu::musttail]]
#else
#define CULE_TAIL_CALL
#endif
#if defined(__x86_64__) && !defined(__CUDACC__)
#define CULE_FOR_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#else
#define CULE_FOR_AVX2
#endif
#if defined(__clang__)
#define CULE_SHUFFLE(Vector, vector, ...) __builtin_shufflevector(vector, vector, __VA_ARGS__)
#else
#define CULE_SHUFFLE(Vector, vector, ...) __builtin_shuffle(vector, Vector{__VA_ARGS__})
#endif
#define CULE_INLINE_LAMBDA __attribute__((always_inline))
#if defined(__x86_64__)
#define CULE_VECTORS "kernels/cpu/vectors/x86_64.h"
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CULE_VECTORS "kernels/cpu/vectors/arm64.h"
#else
#define CULE_VECTORS "kernels/cpu/vectors/other.h"
#endif
#if defined(_WIN32)
#define CULE_SYSTEM "bindings/system/windows.h"
#else
#define CULE_SYSTEM "bindings/system/posix.h"
#endif
#if defined(__clang__)  // takes the whole width anyway
#define CULE_WHOLE_AVX512 ""
#else
#define CULE_WHOLE_AVX512 ",prefer-vector-width=512"
#endif
#if defined(CULE_CHECK_ASSUMPTIONS) && !defined(__CUDA_ARCH__)
#define CULE_CHECK(condition) ((condition) ? static_cast<void>(0) : __builtin_trap())
#else
#define CULE_CHECK(condition) static_cast<void>(0)
#endif
#if defined(__CUDA_ARCH__)
#define CULE_ASSUME(condition) __builtin_assume(condition)
#define CULE_OPAQUE(word) asm("" : "+r"(word))
#define CULE_APART(why) asm volatile("// " why)
#define CULE_OPAQUE_POINTER(pointer)       \
  do {                                     \
    asm("" : "+l"(pointer));               \
    __builtin_assume(__isGlobal(pointer)); \
  } while (false)
#else  // also nvcc's pass for the host
#if defined(CULE_CHECK_ASSUMPTIONS)
#define CULE_ASSUME(condition) CULE_CHECK(condition)
#else
#define CULE_ASSUME(condition) ((condition) ? static_cast<void>(0) : __builtin_unreachable())
#endif
#define CULE_OPAQUE(word) static_cast<void>(0)
#define CULE_APART(why) static_cast<void>(0)
#define CULE_OPAQUE_POINTER(pointer) static_cast<void>(0)
#endif
// The least `word` of all lanes in `lanes`. Each of these lanes must call this. For kernels only
// (kernels/cuda/reductions.cuh).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define CULE_LEAST_OF(lanes, word) ::cule::least_by_votes(lanes, word)
#else
#define CULE_LEAST_OF(lanes, word) __reduce_min_sync(lanes, word)
#endif

namespace cule {
#if defined(__CUDACC__)
constexpr bool kStoresAhead = false;
#else
constexpr bool kStoresAhead = true;
#endif
#if defined(__CUDACC__) || defined(CULE_SIMULATED_GPU)
constexpr bool kSearchesLate = false;
#else
constexpr bool kSearchesLate = true;
#endif
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
  // Makes five copies of the byte and keeps up to two bits of each. Then adds up five shifted
  // copies of the result. There these bits are in their new places.
  const uint64_t kept = byte * 0x80200802ull & 0x0884422110ull;
  return static_cast<uint32_t>((kept * 0x0101010101ull) >> 32 & 0xFF);
#endif
}
CULE_INLINE int count_bits(uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __popc(word);
#else
  return __builtin_popcount(word);
#endif
}
CULE_INLINE int count_bits(uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __popcll(word);
#else
  return __builtin_popcountll(word);
#endif
}
CULE_INLINE int first_bit(uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __ffs(static_cast<int>(word)) - 1;
#else
  return __builtin_ctz(word);
#endif
}
CULE_INLINE int first_bit(uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(word)) - 1;
#else
  return __builtin_ctzll(word);
#endif
}
#if !defined(__CUDACC__)
template <class Thread>
inline bool pin_thread(Thread thread, int cpu) {
#if defined(__linux__)
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  return pthread_setaffinity_np(thread, sizeof only, &only) == 0;
#else
  static_cast<void>(thread);
  static_cast<void>(cpu);
  return false;
#endif
}
inline bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
         __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}
#endif
CULE_INLINE uint32_t take_number(uint32_t* counter) {
#if defined(__CUDA_ARCH__)
  return atomicAdd(counter, 1u);
#else
  return __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
#endif
}
CULE_INLINE uint32_t replace_if(uint32_t* word, uint32_t value, uint32_t other) {
#if defined(__CUDA_ARCH__)
  return atomicCAS(word, value, other);
#else
  __atomic_compare_exchange_n(word, &value, other, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return value;
#endif
}
CULE_INLINE void lower_to(uint32_t* word, uint32_t number) {
#if defined(__CUDA_ARCH__)
  atomicMin(word, number);
#else
  for (uint32_t now = *word; number < now;) {
    const uint32_t found = replace_if(word, now, number);
    if (found == now) break;
    now = found;
  }
#endif
}
CULE_INLINE void raise_to(uint32_t* word, uint32_t number) {
#if defined(__CUDA_ARCH__)
  atomicMax(word, number);
#else
  for (uint32_t now = *word; number > now;) {
    const uint32_t found = replace_if(word, now, number);
    if (found == now) break;
    now = found;
  }
#endif
}
CULE_INLINE void set_bits(uint32_t* word, uint32_t bits) {
#if defined(__CUDA_ARCH__)
  atomicOr(word, bits);
#else
  __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
#endif
}
CULE_INLINE uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(low, high, selector);
#else
  uint32_t picked = 0;
  if (__builtin_constant_p(selector)) {  // all bytes that move equally far are moved at once
    const uint64_t both = low | static_cast<uint64_t>(high) << 32;
    for (int distance = -3; distance <= 7; ++distance) {
      uint32_t moved = 0;
      for (int i = 0; i < 4; ++i) {
        const int from = static_cast<int>(selector >> 4 * i & 7);
        if (from - i == distance) moved |= 0xFFu << 8 * i;
      }
      const uint64_t bytes = distance < 0 ? both << -8 * distance : both >> 8 * distance;
      picked |= static_cast<uint32_t>(bytes) & moved;
    }
    return picked;
  }
  for (int i = 0; i < 4; ++i) {
    const uint32_t number = selector >> 4 * i & 7, word = number < 4 ? low : high;
    picked |= (word >> number % 4 * 8 & 0xFF) << 8 * i;
  }
  return picked;
#endif
}
CULE_INLINE uint32_t greater_bytes(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
  // Compares 16-bit halves twice. The halves as they are give the greater high byte. With the high
  // bytes cleared, they give the greater low byte.
  const uint32_t high = __vmaxu2(a, b), low = __vmaxu2(a & 0x00FF00FF, b & 0x00FF00FF);
  return __byte_perm(high, low, 0x3614);
#else
  uint32_t greater = 0;
  for (int i = 0; i < 32; i += 8) {
    const uint32_t mine = a >> i & 0xFF, other = b >> i & 0xFF;
    greater |= (mine > other ? mine : other) << i;
  }
  return greater;
#endif
}
CULE_INLINE uint32_t bytes_from(uint32_t low, uint32_t high, uint32_t first) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(low, high, first * 8);
#else
  return static_cast<uint32_t>((low | static_cast<uint64_t>(high) << 32) >> first % 4 * 8);
#endif
}
constexpr float kWeightScale = 1267650600228229401496703205376.0f;  // 2^100
constexpr float kWeighedScale = 562949953421312.0f;                 // 2^49
CULE_INLINE float weigh_byte(uint32_t word, int i, float weight) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(__byte_perm(word, 0, 0x4440 | i)) * weight;
#else
  return static_cast<float>(word >> 8 * i & 0xFF) * (weight / kWeightScale) / kWeighedScale;
#endif
}

class ByteTable {
 public:
#if defined(__CUDA_ARCH__)
  CULE_INLINE explicit ByteTable(const uint8_t* bytes)
      : at_(static_cast<uint32_t>(__cvta_generic_to_shared(bytes))) {}
  // The table's entry for byte `i` of a word.
  CULE_INLINE uint32_t look_up(uint32_t word, int i) const {
    uint32_t byte;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(byte) : "r"(__byte_perm(word, at_, 0x7650 | i)));
    return byte;
  }

 private:
  uint32_t at_;
#else
  CULE_INLINE explicit ByteTable(const uint8_t* bytes) : bytes_(bytes) {}
  CULE_INLINE uint32_t look_up(uint32_t word, int i) const { return bytes_[word >> 8 * i & 0xFF]; }

 private:
  const uint8_t* bytes_;
#endif
};

#if defined(__CUDACC__)
CULE_INLINE uint32_t spread_bits(uint32_t bits) {
  return spread_signs((bits & 0x0F) * (0x00204081u << 7));
}
#else
struct SpreadBytes {
  uint64_t of[256];
};
constexpr SpreadBytes spread_bytes() {
  SpreadBytes table{};
  for (int byte = 0; byte < 256; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      table.of[byte] |= uint64_t(byte >> bit & 1 ? 0xFF : 0) << 8 * bit;
    }
  }
  return table;
}
inline constexpr SpreadBytes kSpreadBytes = spread_bytes();
CULE_INLINE uint64_t spread_bits(uint32_t bits) { return kSpreadBytes.of[bits & 0xFF]; }
#endif
}  // namespace cule
