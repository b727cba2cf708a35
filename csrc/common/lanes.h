// The threads that work on an env's picture or sound: one alone, or all of a warp or of a block.
//
// There are `kCount` of them, and `lane()` is the number of this one. At `sync()` each waits for
// all others, and then sees what they wrote. At `ballot(condition)` each waits for all others, too,
// and gets a bit for each lane whose condition is true; at `alike(value)` one for each lane that
// has the same value. Neither makes writes visible. The threads of a block have only `sync`.
#pragma once

#include "common/platform.h"

namespace cule {

struct OneLane {
  static constexpr int kCount = 1;
  CULE_INLINE int lane() const { return 0; }
  CULE_INLINE void sync() const {}
  CULE_INLINE uint32_t ballot(bool condition) const { return condition; }
  CULE_INLINE uint32_t alike(int) const { return 1; }
};

// How many of some lanes come before this one.
template <class Lanes>
CULE_INLINE int lanes_before(const Lanes& lanes, uint32_t bits) {
  return count_bits(bits & ((1u << lanes.lane()) - 1));
}

// The first number from `begin` on, and below `count`, for which `test` is true; or `count`. A lane
// tests each kCount-th.
template <class Lanes, class Test>
CULE_INLINE int first_where(const Lanes& lanes, int begin, int count, const Test& test) {
  for (int base = begin; base < count; base += Lanes::kCount) {
    const int i = base + lanes.lane();
    if (const uint32_t found = lanes.ballot(i < count && test(i))) return base + first_bit(found);
  }
  return count;
}

// Moves some of `count` items together, in their order, to the first places: `take(i, item)` reads
// one and says whether it stays, `put(i, item)` writes it. Returns how many stay.
template <class Item, class Lanes, class Take, class Put>
CULE_INLINE int keep_items(const Lanes& lanes, int count, const Take& take, const Put& put) {
  int kept = 0;
  for (int base = 0; base < count; base += Lanes::kCount) {
    const int i = base + lanes.lane();
    Item item;
    const bool stays = i < count && take(i, item);
    const uint32_t bits = lanes.ballot(stays);
    lanes.sync();  // all have read theirs
    if (stays) put(kept + lanes_before(lanes, bits), item);
    kept += count_bits(bits);
  }
  lanes.sync();
  return kept;
}

}  // namespace cule
