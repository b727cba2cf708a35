// F8 and F6 (Atari): 8 or 16 KiB in 4 KiB banks. A read or a write of a hot spot near the top of
// the window selects a bank: $1FF8-$1FF9 (F8), $1FF6-$1FF9 (F6). With the Superchip (F8SC, F6SC)
// 128 bytes of RAM are written at $1000-$107F and read at $1080-$10FF.
#pragma once

#include "cartridge/cartridge.h"

namespace cule {

constexpr uint32_t kF8FirstHotSpot = 0xFF8, kF6FirstHotSpot = 0xFF6, kLastHotSpot = 0xFF9;

constexpr CartridgeMap map_f8(bool superchip) {
  return {superchip ? Scheme::kF8SC : Scheme::kF8, superchip ? 0x100u : 0, kF8FirstHotSpot, 0,
          slices_of_bank(1)};
}
constexpr CartridgeMap map_f6(bool superchip) {
  return {superchip ? Scheme::kF6SC : Scheme::kF6, superchip ? 0x100u : 0, kF6FirstHotSpot, 0,
          slices_of_bank(0)};
}

// The slices after an access to `offset`.
CULE_INLINE uint32_t switch_atari_bank(const CartridgeMap& map, uint32_t slices, uint32_t offset) {
  return offset >= map.special_begin && offset <= kLastHotSpot
             ? slices_of_bank(offset - map.special_begin)
             : slices;
}

}  // namespace cule
