// The threads that work on an env's picture or sound: one alone, or all of a warp or of a block.
//
// There are `kCount` of them, and `lane()` is the number of this one. At `sync()` each waits for
// all others, and then sees what they wrote. At `ballot(condition)` each waits for all others, too,
// and gets a bit for each lane whose condition is true; it does not make writes visible. The threads
// of a block have no `ballot`.
#pragma once

#include "common/platform.h"

namespace cule {

struct OneLane {
  static constexpr int kCount = 1;
  CULE_INLINE int lane() const { return 0; }
  CULE_INLINE void sync() const {}
  CULE_INLINE uint32_t ballot(bool condition) const { return condition; }
};

}  // namespace cule
