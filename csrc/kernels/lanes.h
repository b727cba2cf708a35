// Who works on an env's picture: one thread alone, or the threads of a warp or block side by side.
//
// `lane()` of `kCount` is one of them. `sync()` lets none go on before all have come, and shows
// each what the others wrote. `ballot(condition)` has all come, too, and has a bit for each of them
// for which the condition holds, but orders no memory. Only the threads of a warp have it.
#pragma once

#include "tia/pictures.h"

namespace cule {

struct OneLane {
  static constexpr int kCount = 1;
  CULE_INLINE int lane() const { return 0; }
  CULE_INLINE void sync() const {}
};

// Calls `body(slot, item)` for each of this lane's `items`, which are shared out in turns. `kMax`
// is how many a lane can have: their slots are known when this is compiled, so that what belongs to
// them stays in registers.
template <int kMax, class Lanes, class Body>
CULE_INLINE void for_each_item(const Lanes& lanes, int items, const Body& body) {
  if constexpr (Lanes::kCount == 1) {
    for (int item = 0; item < items; ++item) body(item, item);
  } else {
#pragma unroll
    for (int slot = 0; slot < kMax; ++slot) {
      const int item = slot * Lanes::kCount + lanes.lane();
      if (item < items) body(slot, item);
    }
  }
}

// Says of each scanline that it shows its own row.
template <class Lanes>
CULE_INLINE void own_rows(const Pictures& pictures, const Lanes& lanes) {
  for (int i = lanes.lane(); i < 2 * static_cast<int>(Pictures::kRows); i += Lanes::kCount) {
    pictures.row_of[i] = static_cast<uint8_t>(i);
  }
}

}  // namespace cule
