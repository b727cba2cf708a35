// The levels of vector code (plain.h) on 64-bit ARM. All such processors have these instructions.
#pragma once

#include <arm_neon.h>

#include "kernels/cpu/vectors/plain.h"

namespace cule {

struct NeonVectors {
  static inline bool same(const uint8_t* row, const uint8_t* other) {
    uint8x16_t differing = vdupq_n_u8(0);
    for (int x = 0; x < kLinePixels; x += 16)
      differing = vorrq_u8(differing, veorq_u8(vld1q_u8(row + x), vld1q_u8(other + x)));
    return vmaxvq_u8(differing) == 0;
  }
  static inline void look_up(const Colors& colors, const uint8_t* indices, uint8_t* values) {
    uint8x16x4_t quarters[4];
    for (int i = 0; i < 4; ++i) quarters[i] = vld1q_u8_x4(colors.of + 64 * i);
    for (int x = 0; x < kLinePixels; x += 16) {
      uint8x16_t index = vld1q_u8(indices + x);
      uint8x16_t value = vqtbl4q_u8(quarters[0], index);
      for (int i = 1; i < 4; ++i) {  // an index outside a quarter leaves the value as it is
        index = vsubq_u8(index, vdupq_n_u8(64));
        value = vqtbx4q_u8(value, quarters[i], index);
      }
      vst1q_u8(values + x, value);
    }
  }
  static inline void gather(const ColumnTable& table, const uint8_t* row, int group, int block,
                            uint32_t* words) {
    if (!table.in_windows) return PlainVectors::gather(table, row, group, block, words);
    row += group * ColumnTable::kGroup;
    const uint16_t* firsts = table.firsts.data() + block * ColumnTable::kBlock;
    const uint8_t* picks = table.picks.data() + block * ColumnTable::kBlock * ColumnTable::kGroup;
    for (int i = 0; i < ColumnTable::kBlock; i += ColumnTable::kWindowColumns) {
      const uint8x16_t pick = vld1q_u8(picks + ColumnTable::kGroup * i);
      const uint8x16_t picked = vqtbl1q_u8(vld1q_u8(row + firsts[i]), pick);
      vst1q_u32(words + i, vreinterpretq_u32_u8(picked));
    }
  }
};

#define CULE_VECTOR_LEVELS(LEVEL) LEVEL(neon, NeonVectors, , true) CULE_PLAIN_LEVEL(LEVEL)

}  // namespace cule
