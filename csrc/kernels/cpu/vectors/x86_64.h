// The levels of vector code (plain.h) on x86-64. Which of them a processor has is found out at run
// time.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/vectors/plain.h"

#define CULE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi" CULE_WHOLE_AVX512)))

namespace cule {

struct Avx2Vectors {
  static CULE_FOR_AVX2 inline bool same(const uint8_t* row, const uint8_t* other) {
    __m256i differing = _mm256_setzero_si256();
    for (int x = 0; x < kLinePixels; x += 32)
      differing = _mm256_or_si256(differing, _mm256_xor_si256(load(row + x), load(other + x)));
    return _mm256_testz_si256(differing, differing);
  }
  // Without lost colors all indices are even. Then there are eight tables of sixteen values, as an
  // instruction looks up four bits. The highest three choose between their values, in pairs.
  static CULE_FOR_AVX2 inline void look_up(const Colors& colors, const uint8_t* indices,
                                           uint8_t* values) {
    __m256i any = _mm256_setzero_si256();
    for (int x = 0; x < kLinePixels; x += 32) any = _mm256_or_si256(any, load(indices + x));
    if (!_mm256_testz_si256(any, _mm256_set1_epi8(1)))
      return PlainVectors::look_up(colors, indices, values);
    for (int x = 0; x < kLinePixels; x += 32) {
      const __m256i index = load(indices + x);
      const __m256i low = _mm256_and_si256(_mm256_srli_epi16(index, 1), _mm256_set1_epi8(15));
      __m256i found[8];
      for (int i = 0; i < 8; ++i) {
        const __m128i sixteen = _mm_load_si128(window(colors.of_even + 16 * i));
        found[i] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(sixteen), low);
      }
      for (int bit = 5; bit < 8; ++bit) {
        const __m256i choice = _mm256_slli_epi16(index, 7 - bit);  // the bit becomes the highest
        for (int i = 0; i < 128 >> bit; ++i)
          found[i] = _mm256_blendv_epi8(found[2 * i], found[2 * i + 1], choice);
      }
      store(values + x, found[0]);
    }
  }
  static CULE_FOR_AVX2 inline void gather(const ColumnTable& table, const uint8_t* row, int group,
                                          int block, uint32_t* words) {
    if (!table.in_windows) return PlainVectors::gather(table, row, group, block, words);
    row += group * ColumnTable::kGroup;
    const uint16_t* firsts = table.firsts.data() + block * ColumnTable::kBlock;
    const uint8_t* picks = table.picks.data() + block * ColumnTable::kBlock * ColumnTable::kGroup;
    for (int i = 0; i < ColumnTable::kBlock; i += 2 * ColumnTable::kWindowColumns) {
      const __m256i pixels =
          _mm256_loadu2_m128i(window(row + firsts[i + ColumnTable::kWindowColumns]),
                              window(row + firsts[i]));
      store(words + i, _mm256_shuffle_epi8(pixels, load(picks + ColumnTable::kGroup * i)));
    }
  }

 private:
  static CULE_FOR_AVX2 inline __m256i load(const uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static CULE_FOR_AVX2 inline void store(void* to, __m256i value) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), value);
  }
  static CULE_INLINE const __m128i* window(const uint8_t* row) {
    return reinterpret_cast<const __m128i*>(row);
  }
};

// A row is two vectors and a half.
struct Avx512Vectors {
  static CULE_AVX512 inline bool same(const uint8_t* row, const uint8_t* other) {
    const __m512i first = _mm512_xor_si512(load(row), load(other));
    const __m512i second = _mm512_xor_si512(load(row + 64), load(other + 64));
    const __m256i third = _mm256_xor_si256(load_half(row + 128), load_half(other + 128));
    const __m512i both = _mm512_or_si512(first, second);
    return (_mm512_test_epi64_mask(both, both) | _mm256_test_epi64_mask(third, third)) == 0;
  }
  // An instruction looks up an index of seven bits. What comes after the row's end is any bytes.
  static CULE_AVX512 inline void look_up(const Colors& colors, const uint8_t* indices,
                                         uint8_t* values) {
    const __m512i quarters[4] = {load(colors.of), load(colors.of + 64), load(colors.of + 128),
                                 load(colors.of + 192)};
    _mm512_storeu_si512(values, look_up(quarters, load(indices)));
    _mm512_storeu_si512(values + 64, look_up(quarters, load(indices + 64)));
    const __m512i third = _mm512_castsi256_si512(load_half(indices + 128));
    _mm512_storeu_si512(values + 128, look_up(quarters, third));
  }
  // Needs no windows: an instruction picks bytes from 128.
  static CULE_AVX512 inline void gather(const ColumnTable& table, const uint8_t* row, int group,
                                        int block, uint32_t* words) {
    constexpr int kPicks = ColumnTable::kBlock * ColumnTable::kGroup;
    const __m512i picks = _mm512_add_epi8(
        load(table.pixels.data() + block * kPicks),
        _mm512_set1_epi8(static_cast<char>(group * ColumnTable::kGroup)));
    const __m512i lower = _mm512_permutex2var_epi8(load(row), picks, load(row + 64));
    const __mmask64 choice = _mm512_movepi8_mask(picks);
    _mm512_storeu_si512(words,
                        _mm512_mask_permutexvar_epi8(lower, choice, picks, load(row + 128)));
  }

 private:
  static CULE_AVX512 inline __m512i load(const uint8_t* from) { return _mm512_loadu_si512(from); }
  static CULE_AVX512 inline __m256i load_half(const uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static CULE_AVX512 inline __m512i look_up(const __m512i* quarters, __m512i index) {
    const __m512i lower = _mm512_permutex2var_epi8(quarters[0], index, quarters[1]);
    const __m512i upper = _mm512_permutex2var_epi8(quarters[2], index, quarters[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lower, upper);
  }
};

#define CULE_HAS(feature) (__builtin_cpu_init(), __builtin_cpu_supports(feature))
#define CULE_HAS_AVX512                                                             \
  (CULE_HAS("avx512f") && CULE_HAS("avx512bw") && CULE_HAS("avx512dq") &&           \
   CULE_HAS("avx512vl") && CULE_HAS("avx512vbmi"))
#define CULE_VECTOR_LEVELS(LEVEL)                             \
  LEVEL(avx512, Avx512Vectors, CULE_AVX512, CULE_HAS_AVX512)  \
  LEVEL(avx2, Avx2Vectors, CULE_FOR_AVX2, has_avx2())         \
  CULE_PLAIN_LEVEL(LEVEL)

}  // namespace cule
