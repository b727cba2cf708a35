// DPC (Activision's Display Processor Chip, Pitfall II): F8 banking plus eight data fetchers over a
// 2 KiB display ROM, a random number generator and three-voice music. Registers are read at
// $1000-$103F and written at $1040-$107F.
//
// Source: US patent 4,644,495 (Crane) for the registers. As in ale-py, only accesses to the
// registers and to the window's last 64 bytes clock the random number generator. The music clock
// runs at 15,750 Hz of a 1,193,191.67 Hz processor, with its remainder kept as a double.
#pragma once

#include "cartridge/atari_banks.h"
#include "common/cycles.h"

namespace cule {

constexpr uint32_t kDpcProgramBytes = 8192, kDpcDisplayBytes = 2048;

struct Dpc {
  double fractional_clocks;  // of the music oscillator
  int32_t music_cycle;       // up to when the music has been computed
  uint16_t counters[8];      // 11 bits
  uint8_t tops[8], bottoms[8], flags[8];
  uint8_t music_mode[3];     // fetchers 5 to 7
  uint8_t random;
};
static_assert(sizeof(Dpc) <= kCartridgeBytes, "the DPC must fit an env's cartridge bytes");

constexpr CartridgeMap map_dpc() { return {Scheme::kDPC, 0x80, 0xFC0, 0, slices_of_bank(1)}; }

CULE_INLINE void dpc_power_on(Dpc& dpc) {
  dpc = Dpc{};
  dpc.random = 1;
}

CULE_INLINE void dpc_reset(Dpc& dpc) {
  dpc.music_cycle = 0;
  dpc.fractional_clocks = 0.0;
}

// An 8-bit shift register fed with the complement of the parity of bits 7, 5, 4 and 3.
CULE_INLINE void clock_random(Dpc& dpc) {
  const uint32_t x = dpc.random;
  const uint32_t parity = (x >> 7 ^ x >> 5 ^ x >> 4 ^ x >> 3) & 1;
  dpc.random = static_cast<uint8_t>(x << 1 | (parity ^ 1));
}

// Advances the low counters and flags of the fetchers in music mode to `cycle`.
CULE_HD inline void update_music(Dpc& dpc, int32_t cycle) {
  const int32_t cycles = wrapping_minus(cycle, dpc.music_cycle);
  dpc.music_cycle = cycle;
  const double clocks = 15750.0 * cycles / 1193191.66666667 + dpc.fractional_clocks;
  const int32_t whole = static_cast<int32_t>(clocks);
  dpc.fractional_clocks = clocks - whole;
  if (whole <= 0) return;
  for (int i = 5; i < 8; ++i) {
    if (!dpc.music_mode[i - 5]) continue;
    const int32_t top = dpc.tops[i];
    int32_t low = 0;
    if (top != 0) {
      low = (dpc.counters[i] & 0xFF) - whole % (top + 1);
      if (low < 0) low += top + 1;
    }
    if (low <= dpc.bottoms[i]) dpc.flags[i] = 0x00;
    else if (low <= top) dpc.flags[i] = 0xFF;
    dpc.counters[i] = static_cast<uint16_t>((dpc.counters[i] & 0x700) | (low & 0xFF));
  }
}

// Three square waves through a resistor ladder.
CULE_HD inline uint32_t music_amplitude(Dpc& dpc, int32_t cycle) {
  update_music(dpc, cycle);
  const uint32_t voices = (dpc.music_mode[0] && dpc.flags[5]) |
                          (dpc.music_mode[1] && dpc.flags[6]) << 1 |
                          (dpc.music_mode[2] && dpc.flags[7]) << 2;
  constexpr uint32_t kAmplitudes = 0xFBA69540u;  // one nibble for each combination of voices
  return kAmplitudes >> 4 * voices & 0x0F;
}

// A read at `offset` < $40. `display` is the 2 KiB display ROM.
template <class Display>
CULE_HD inline uint32_t dpc_read(Dpc& dpc, uint32_t offset, int32_t cycle, const Display& display) {
  const uint32_t i = offset & 7;
  const uint32_t low = dpc.counters[i] & 0xFF;
  if (low == dpc.tops[i]) dpc.flags[i] = 0xFF;
  else if (low == dpc.bottoms[i]) dpc.flags[i] = 0x00;
  uint32_t value = 0;
  switch (offset >> 3) {
    case 0: value = i < 4 ? dpc.random : music_amplitude(dpc, cycle); break;
    case 1: value = display(kDpcDisplayBytes - 1 - dpc.counters[i]); break;
    case 2: value = display(kDpcDisplayBytes - 1 - dpc.counters[i]) & dpc.flags[i]; break;
    case 7: value = dpc.flags[i]; break;
    default: break;
  }
  if (i < 5 || !dpc.music_mode[i - 5])
    dpc.counters[i] = static_cast<uint16_t>((dpc.counters[i] - 1) & 0x7FF);
  return value;
}

// A write at `offset` from $40 to $7F.
CULE_HD inline void dpc_write(Dpc& dpc, uint32_t offset, uint32_t value) {
  const uint32_t i = offset & 7;
  const uint8_t byte = static_cast<uint8_t>(value);
  switch (offset >> 3 & 7) {
    case 0:
      dpc.tops[i] = byte;
      dpc.flags[i] = 0x00;
      break;
    case 1: dpc.bottoms[i] = byte; break;
    case 2: {
      const uint32_t low = i >= 5 && dpc.music_mode[i - 5] ? dpc.tops[i] : byte;
      dpc.counters[i] = static_cast<uint16_t>((dpc.counters[i] & 0x700) | low);
      break;
    }
    case 3:
      dpc.counters[i] = static_cast<uint16_t>((byte & 7) << 8 | (dpc.counters[i] & 0xFF));
      if (i >= 5) dpc.music_mode[i - 5] = (byte & 0x10) != 0;
      break;
    case 6: dpc.random = 1; break;
    default: break;
  }
}

}  // namespace cule
