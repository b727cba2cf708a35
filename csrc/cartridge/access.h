// Reads and writes of a cartridge's special addresses, by scheme.
#pragma once

#include "cartridge/atari_banks.h"
#include "cartridge/dpc.h"
#include "cartridge/parker_bros.h"
#include "cartridge/plain.h"

namespace cule {

// The slices that are visible after an access to `offset`, which may switch banks.
CULE_INLINE uint32_t touch_hot_spot(const CartridgeMap& map, uint32_t slices, uint32_t offset) {
  switch (map.scheme) {
    case Scheme::kF8: case Scheme::kF8SC: case Scheme::kF6: case Scheme::kF6SC:
      return switch_atari_bank(map, slices, offset);
    case Scheme::kE0: return switch_e0_slice(slices, offset);
    case Scheme::kDPC:
      return offset == 0xFF8 || offset == 0xFF9 ? slices_of_bank(offset - 0xFF8) : slices;
    default: return slices;
  }
}

// The value at a special address, and the slices that are visible after the access.
struct CartridgeAccess {
  uint32_t value;
  uint32_t slices;
};

// A read of a special address. `bytes` are the env's cartridge bytes, `rom(offset)` reads the
// image.
template <class Rom>
CULE_COLD CartridgeAccess cartridge_read(const CartridgeMap& map, uint32_t slices, uint8_t* bytes,
                                         Rom rom, uint32_t address, int32_t cycle) {
  const uint32_t offset = window_offset(address);
  if (map.scheme == Scheme::kDPC) {
    Dpc& dpc = *reinterpret_cast<Dpc*>(bytes);
    clock_random(dpc);
    if (offset < 0x40)
      return {dpc_read(dpc, offset, cycle, [&](uint32_t i) { return rom(kDpcProgramBytes + i); }),
              slices};
  } else if (offset >= 0x80 && offset < map.special_end) {
    return {bytes[cartridge_index(offset)], slices};
  }
  slices = touch_hot_spot(map, slices, offset);
  return {rom(rom_offset(map, slices, address)), slices};
}

// A write to the cartridge, special or not. Returns the slices that are visible after it.
CULE_COLD uint32_t cartridge_write(const CartridgeMap& map, uint32_t slices, uint8_t* bytes,
                                   uint32_t address, uint32_t value) {
  const uint32_t offset = window_offset(address);
  if (map.scheme == Scheme::kDPC) {
    Dpc& dpc = *reinterpret_cast<Dpc*>(bytes);
    clock_random(dpc);
    if (offset >= 0x40 && offset < 0x80) {
      dpc_write(dpc, offset, value);
      return slices;
    }
  } else if (offset < 0x80 && offset < map.special_end) {
    bytes[offset] = static_cast<uint8_t>(value);
    return slices;
  }
  return touch_hot_spot(map, slices, offset);
}

}  // namespace cule
