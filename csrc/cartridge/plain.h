// 2K and 4K: no bank switching. The window shows a 2K image twice. FE (Robot Tank, Decathlon): 8
// KiB. Bit 13 of the 6507's 16-bit program counter selects the half, so that a JSR or RTS to $Dxxx
// or $Fxxx switches banks.
#pragma once

#include "cartridge/cartridge.h"

namespace cule {

constexpr CartridgeMap map_2k() { return {Scheme::k2K, 0, kWindowBytes, 0, 0x01000100u}; }
constexpr CartridgeMap map_4k() { return {Scheme::k4K, 0, kWindowBytes, 0, slices_of_bank(0)}; }
constexpr CartridgeMap map_fe() {
  return {Scheme::kFE, 0, kWindowBytes, 0x2000, slices_of_bank(0)};
}

}  // namespace cule
