// What lanes of a warp find out together.
#pragma once

#include "common/platform.h"

namespace cule {

// The least `word` of those that `lanes` come with, where a GPU has no reductions (before Ampere):
// bit by bit, from the highest. Where any lanes that are left have none, those are left.
__device__ __forceinline__ uint32_t least_by_votes(uint32_t lanes, uint32_t word) {
  uint32_t least = 0;
  bool left = true;
  for (int bit = 31; bit >= 0; --bit) {
    const bool has = word >> bit & 1;
    const bool any_without = __ballot_sync(lanes, left && !has) != 0;
    left = left && has != any_without;
    least |= any_without ? 0u : 1u << bit;
  }
  return least;
}

}  // namespace cule
