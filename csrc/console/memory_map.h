// The memory map: which chip an address selects, and which of the chip's bytes.
//
// Addresses have 16 bits here, but the 6507 has only 13 address lines. They are decoded as on the
// board. If A12 is high, the address is in the cartridge. Else, if A7 is low, it is in the TIA.
// Else it is in RAM if A9 is low, and in the RIOT's registers if A9 is high. So each chip is at
// many addresses, and RAM is also the page of the stack. Source: Stella Programmer's Guide, "Memory
// map".
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
// Whether a read of `address` reads the RIOT's timer.
CULE_INLINE constexpr bool is_timer_address(uint32_t address) {
  return is_riot_address(address) && reads_timer(address);
}

// For an address in RAM, the index of its byte. For one in the TIA, the register that a write and a
// read go to.
constexpr uint32_t kRamBytes = 128;
CULE_INLINE constexpr uint32_t ram_index(uint32_t address) { return address & (kRamBytes - 1); }
CULE_INLINE constexpr uint32_t tia_register_written(uint32_t address) { return address & 0x3F; }
CULE_INLINE constexpr uint32_t tia_register_read(uint32_t address) { return address & 0x0F; }

// In zero page and in the stack's page, low bytes from kFirstInRam on are RAM. Those below are the
// TIA.
constexpr uint32_t kFirstInRam = kA7, kLastInPage = 0xFF;

// Where the processor finds its program counter at reset.
constexpr uint32_t kResetVector = 0xFFFC;

}  // namespace cule
