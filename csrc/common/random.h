// The random number generator Philox4x32-10. Its numbers depend only on a key and a counter.
// Therefore every backend gets the same numbers, in any order.
//
// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011.
#pragma once

#include "common/platform.h"

namespace cule {

struct RandomWords {
  uint32_t words[4];
};

CULE_HD inline RandomWords philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0,
                   n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// What a random number is for. Each purpose has its own sequence.
enum RandomPurpose : uint32_t { kSampleStickyActions, kSampleResetState, kSampleLifeNoops };

CULE_INLINE RandomWords sample(uint64_t seed, uint32_t env, RandomPurpose purpose,
                               uint32_t counter) {
  return philox(seed, uint64_t{counter} << 32 | purpose, env);
}

// A uniform number in [0, 1), a multiple of 2^-24.
CULE_INLINE float unit_float(uint32_t word) {
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

// A uniform number in [0, bound), with a bias of at most bound / 2^32.
CULE_INLINE uint32_t below(uint32_t word, uint32_t bound) {
  return static_cast<uint32_t>(uint64_t{word} * bound >> 32);
}

}  // namespace cule
