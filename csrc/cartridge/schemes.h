// The bank-switching schemes, a row each.
#pragma once

#include "cartridge/atari_banks.h"
#include "cartridge/dpc.h"
#include "cartridge/parker_bros.h"
#include "cartridge/plain.h"

namespace cule {

struct SchemeRow {
  const char* name;
  CartridgeMap map;
  uint32_t least_bytes;  // of an image
  // Whether the window shows one bank, all of it, or a smaller image several times.
  bool whole_bank;
  // The bits of a program counter that two instructions have in common if the same access to ROM
  // shows both: those above the part of the window that is switched by itself.
  uint32_t same_bank;
};

// In the order of Scheme.
constexpr uint32_t kAboveWindow = 0x10000 - 2 * kWindowBytes, kAboveSlice = 0x10000 - kSliceBytes;
constexpr SchemeRow kSchemes[] = {
    {"2K", map_2k(), 2048, true, kAboveWindow},
    {"4K", map_4k(), 4096, true, kAboveWindow},
    {"F8", map_f8(false), 8192, true, kAboveWindow},
    {"F8SC", map_f8(true), 8192, true, kAboveWindow},
    {"F6", map_f6(false), 16384, true, kAboveWindow},
    {"F6SC", map_f6(true), 16384, true, kAboveWindow},
    {"E0", map_e0(), 8192, false, kAboveSlice},
    {"FE", map_fe(), 8192, false, kAboveWindow},
    {"DPC", map_dpc(), kDpcProgramBytes + kDpcDisplayBytes, true, kAboveWindow},
};
constexpr uint32_t kNumSchemes = sizeof kSchemes / sizeof *kSchemes;

constexpr bool schemes_are_in_order() {
  for (uint32_t i = 0; i < kNumSchemes; ++i) {
    if (kSchemes[i].map.scheme != static_cast<Scheme>(i)) return false;
  }
  return kNumSchemes == static_cast<uint32_t>(Scheme::kDPC) + 1;
}
static_assert(schemes_are_in_order(), "kSchemes has a row for each Scheme, in its order");

}  // namespace cule
