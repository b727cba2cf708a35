// Cartridges: how the 4 KiB at $1000-$1FFF show a ROM image, for all bank-switching schemes.
//
// The window has four 1 KiB parts, each of which shows a 1 KiB slice of the image.
// `ConsoleState::slices` holds the numbers of these slices, one byte each; while frames run,
// `ConsoleBus::slices` does. Reading plain ROM needs nothing else. Offsets into the window below
// `special_end` or from `special_begin` on are special: hot spots that switch banks, Superchip RAM,
// the DPC's registers. They go through `cartridge_read` and `cartridge_write`, which dispatch to
// one file for each scheme.
#pragma once

#include "common/platform.h"

namespace cule {

enum class Scheme : uint8_t { k2K, k4K, kF8, kF8SC, kF6, kF6SC, kE0, kFE, kDPC };

// The window, its parts, and where in it an address is.
constexpr uint32_t kWindowBytes = 4096, kSliceBytes = 1024;
CULE_INLINE constexpr uint32_t window_offset(uint32_t address) {
  return address & (kWindowBytes - 1);
}

// The constant facts of a cartridge.
struct CartridgeMap {
  Scheme scheme;
  uint32_t special_end;
  uint32_t special_begin;
  // FE: address line 13 selects the bank, so it counts as part of the address; else 0
  uint32_t a13_mask;
  uint32_t reset_slices;
};

// The size of an env's cartridge bytes: a Superchip's RAM, or the DPC's registers.
constexpr uint32_t kCartridgeBytes = 128;
CULE_INLINE constexpr uint32_t cartridge_index(uint32_t address) {
  return address & (kCartridgeBytes - 1);
}

constexpr uint32_t slices_of_bank(uint32_t bank) { return 0x03020100u + bank * 0x04040404u; }

// The offset in the image of the byte at `address`.
CULE_INLINE uint32_t rom_offset(const CartridgeMap& map, uint32_t slices, uint32_t address) {
  const uint32_t slice = slices >> (address >> 10 & 3) * 8 & 0xFF;
  const uint32_t upper = ((address & map.a13_mask) ^ map.a13_mask) >> 1;  // FE: 4096 if A13 is low
  return upper + (slice << 10 | (address & (kSliceBytes - 1)));
}

constexpr bool has_superchip(Scheme scheme) {
  return scheme == Scheme::kF8SC || scheme == Scheme::kF6SC;
}

// One comparison for both ends: an offset below `special_end` wraps around to a large number.
CULE_INLINE bool is_special_offset(const CartridgeMap& map, uint32_t offset) {
  return offset - map.special_end >= map.special_begin - map.special_end;
}

}  // namespace cule
