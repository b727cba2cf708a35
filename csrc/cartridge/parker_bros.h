// E0 (Parker Brothers): 8 KiB in eight 1 KiB slices. $1FE0-$1FE7 choose the slice at $1000,
// $1FE8-$1FEF the one at $1400, and $1FF0-$1FF7 the one at $1800. The last slice is always at
// $1C00.
#pragma once

#include "cartridge/cartridge.h"

namespace cule {

constexpr CartridgeMap map_e0() { return {Scheme::kE0, 0, 0xFE0, 0, 0x07060504u}; }

CULE_INLINE uint32_t switch_e0_slice(uint32_t slices, uint32_t offset) {
  if (offset < 0xFE0 || offset > 0xFF7) return slices;
  const uint32_t shift = (offset - 0xFE0) >> 3 << 3;
  return (slices & ~(0xFFu << shift)) | (offset & 7) << shift;
}

}  // namespace cule
