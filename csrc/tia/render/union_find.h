// Numbers that are put together to sets by several lanes at once.
//
// Each set is a tree: a number has a parent that is less, and the least of a set has itself. This
// is union-find without locks, as in J. Jaiganesh and M. Burtscher, "A High-Performance Connected
// Components Implementation for GPUs", HPDC 2018.
#pragma once

#include "common/lanes.h"

namespace cule {

// The least number of the set that one is in.
CULE_INLINE uint32_t least_of(const volatile uint32_t* parents, uint32_t number) {
  for (uint32_t parent = parents[number]; parent != number; parent = parents[number])
    number = parent;
  return number;
}

// Makes one of the sets that two numbers are in.
CULE_INLINE void unite(uint32_t* parents, uint32_t one, uint32_t other) {
  one = least_of(parents, one);
  other = least_of(parents, other);
  while (one != other) {
    const uint32_t less = one < other ? one : other, more = one < other ? other : one;
    // Another lane may have given it a parent since.
    const uint32_t parent = replace_if(&parents[more], more, less);
    if (parent == more) return;
    one = least_of(parents, parent);
    other = least_of(parents, less);
  }
}

// Makes the least number of its set the parent of each number below `count`.
template <class Lanes>
CULE_INLINE void find_least(uint32_t* parents, int count, const Lanes& lanes) {
  for (int base = 0; base < count; base += Lanes::kCount) {
    const int i = base + lanes.lane();
    const uint32_t least = i < count ? least_of(parents, static_cast<uint32_t>(i)) : 0;
    lanes.sync();  // all have found theirs
    if (i < count) parents[i] = least;
    lanes.sync();
  }
}

}  // namespace cule
