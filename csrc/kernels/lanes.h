// What the lanes that work on an env (common/lanes.h) do together.
#pragma once

#include "common/lanes.h"
#include "tia/render/pictures.h"

namespace cule {

// Calls `body(slot, item)` for this lane's share of `items`: each kCount-th. A lane can have up to
// `kMax`. Slots are known at compile time, so values that belong to a slot stay in registers.
template <int kMax, class Lanes, class Body>
CULE_INLINE void for_each_item(const Lanes& lanes, int items, const Body& body) {
#pragma unroll
  for (int slot = 0; slot < kMax; ++slot) {
    const int item = slot * Lanes::kCount + lanes.lane();
    if (item < items) body(slot, item);
  }
}

// Makes each scanline show its own row.
template <class Lanes>
CULE_INLINE void own_rows(const Pictures& pictures, const Lanes& lanes) {
  for (int i = lanes.lane(); i < 2 * static_cast<int>(Pictures::kRows); i += Lanes::kCount) {
    pictures.row_of[i] = static_cast<uint8_t>(i);
  }
}

}  // namespace cule
