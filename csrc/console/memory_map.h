// The memory map: which chip an address is, and which of the chip's bytes.
//
// A program counter and an address have 16 bits here; the 6507 has 13 address lines. They decode as
// on the board: A12 selects the cartridge; else A7 low the TIA; else A9 low the RAM, A9 high the
// RIOT's registers. So each chip shows up at many addresses, RAM also as the page of the stack.
// Source: Stella Programmer's Guide, "Memory map".
#pragma once

#include "cartridge/cartridge.h"
#include "m6532/m6532.h"

namespace cule {

constexpr uint32_t kA7 = 0x0080, kA9 = 0x0200, kA12 = 0x1000;

CULE_INLINE constexpr bool is_cartridge_address(uint32_t address) { return (address & kA12) != 0; }
CULE_INLINE constexpr bool is_tia_address(uint32_t address) {
  return (address & (kA12 | kA7)) == 0;
}
CULE_INLINE constexpr bool is_ram_address(uint32_t address) {
  return (address & (kA12 | kA9 | kA7)) == kA7;
}
CULE_INLINE constexpr bool is_riot_address(uint32_t address) {
  return (address & (kA12 | kA9 | kA7)) == (kA9 | kA7);
}
// Whether a read there is of the RIOT's timer.
CULE_INLINE constexpr bool is_timer_address(uint32_t address) {
  return is_riot_address(address) && reads_timer(address);
}

// The byte of RAM, and the registers of the TIA that a write and a read of an address go to.
constexpr uint32_t kRamBytes = 128;
CULE_INLINE constexpr uint32_t ram_index(uint32_t address) { return address & (kRamBytes - 1); }
CULE_INLINE constexpr uint32_t tia_register_written(uint32_t address) { return address & 0x3F; }
CULE_INLINE constexpr uint32_t tia_register_read(uint32_t address) { return address & 0x0F; }

// Of zero page and of the stack's page, the low bytes from here on are RAM; those before are the
// TIA.
constexpr uint32_t kFirstInRam = kA7, kLastInPage = 0xFF;

// Where the processor finds its program counter at reset.
constexpr uint32_t kResetVector = 0xFFFC;

}  // namespace cule
