// Reductions over some lanes of a warp.
#pragma once

#include "common/platform.h"

namespace cule {

// Returns the least `word` of all `lanes`, for GPUs without reductions (before Ampere). It goes bit
// by bit, from the highest: if some of the lanes still in question do not have the bit, only those
// stay in question.
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
