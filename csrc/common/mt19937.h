// The random number generator MT19937 (Mersenne Twister). It produces the same numbers as ale-py's
// generator. Each env has one. The caller provides the memory.
//
// Source: M. Matsumoto, T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998). Seeding follows
// their 2002 revision and std::mt19937.
#pragma once

#include "common/platform.h"

namespace cule {

struct Mt19937 {
  static constexpr uint32_t kWords = 624;
  static constexpr uint32_t kStateWords = kWords + 1;  // the last one: how many words are used

  uint32_t* words;   // word i is words[i * stride]
  size_t stride;

  CULE_INLINE uint32_t& at(uint32_t i) const { return words[i * stride]; }

  CULE_HD void seed(uint32_t value) const {
    at(0) = value;
    for (uint32_t i = 1; i < kWords; ++i) {
      value = 1812433253u * (value ^ value >> 30) + i;
      at(i) = value;
    }
    at(kWords) = kWords;
  }

  CULE_HD void twist() const {
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint32_t y = (at(i) & 0x80000000u) | (at(i + 1 < kWords ? i + 1 : 0) & 0x7FFFFFFFu);
      const uint32_t far = i + 397 < kWords ? i + 397 : i + 397 - kWords;
      at(i) = at(far) ^ y >> 1 ^ (y & 1 ? 0x9908B0DFu : 0);
    }
    at(kWords) = 0;
  }

  CULE_HD uint32_t next() const {
    if (at(kWords) >= kWords) twist();
    uint32_t y = at(at(kWords)++);
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C5680u;
    y ^= y << 15 & 0xEFC60000u;
    return y ^ y >> 18;
  }

  // A uniform number in [0, bound). Uses the method of libstdc++'s uniform_int_distribution:
  // Lemire's multiply and reject.
  CULE_HD uint32_t below(uint32_t bound) const {
    uint64_t product = uint64_t{next()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = (0u - bound) % bound;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }
};

}  // namespace cule
