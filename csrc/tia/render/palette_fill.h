// Turns objects into colors: given which object each pixel shows, gives the pixel its color. Does
// sixteen pixels at a time, in parts of a Word.
//
// `colors` has, from the lowest byte up, the colors of player 0, player 1, the playfield and the
// background. `bits0`, `bits1` and `bitsf` say which pixels show the first three; the first pixel
// is the lowest bit. A pixel is in at most one of them. A pixel in none shows the background.
//
// priority.h decides which object a pixel shows, and has the source.
#pragma once

#include "common/platform.h"

namespace cule {

template <class Word>
struct PaletteFill;

// For a CPU: eight pixels at a time, by a table. Keeps the background, and for each other color the
// bits in which it differs from the background.
template <>
struct PaletteFill<uint64_t> {
  uint64_t bk, p0, p1, pf;

  CULE_INLINE explicit PaletteFill(uint32_t colors)
      : bk(all_of(colors >> 24)), p0(all_of(colors & 0xFF) ^ bk),
        p1(all_of(colors >> 8 & 0xFF) ^ bk), pf(all_of(colors >> 16 & 0xFF) ^ bk) {}
  static CULE_INLINE uint64_t all_of(uint32_t color) { return color * (~uint64_t{0} / 0xFF); }

  CULE_INLINE void paint(uint32_t bits0, uint32_t bits1, uint32_t bitsf, uint64_t* parts) const {
    for (int i = 0; i < 2; ++i) {
      parts[i] = bk;
      if (((bits0 | bits1 | bitsf) & 0xFFFF) == 0) continue;
      parts[i] ^= (p0 & spread_bits(bits0 >> 8 * i)) ^ (p1 & spread_bits(bits1 >> 8 * i)) ^
                  (pf & spread_bits(bitsf >> 8 * i));
    }
  }
};

// For a GPU: four pixels at a time. Picks a byte of `colors` for each pixel, by its number in a
// nibble.
template <>
struct PaletteFill<uint32_t> {
  uint32_t colors;

  CULE_INLINE explicit PaletteFill(uint32_t colors) : colors(colors) {}

  CULE_INLINE void paint(uint32_t bits0, uint32_t bits1, uint32_t bitsf, uint32_t* parts) const {
    const uint32_t low = ~(bits0 | bitsf), high = ~(bits0 | bits1);  // bits of the numbers
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t numbers = nibbles(low >> 8 * i) + 2 * nibbles(high >> 8 * i);
      parts[2 * i] = pick_bytes(colors, 0, numbers);
      parts[2 * i + 1] = pick_bytes(colors, 0, numbers >> 16);
    }
  }

  // Spreads eight bits: each becomes the lowest bit of a nibble. No sum carries.
  static CULE_INLINE uint32_t nibbles(uint32_t bits) {
    bits = (bits & 0xFF) * 0x1001 & 0x000F000F;
    bits = bits * 0x41 & 0x03030303;
    return bits * 9 & 0x11111111;
  }
};

}  // namespace cule
