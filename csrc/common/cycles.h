// Arithmetic on cycle counters. Only differences between counters matter, so they may wrap around.
#pragma once

#include "common/platform.h"

namespace cule {

CULE_INLINE int32_t wrapping_minus(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

}  // namespace cule
