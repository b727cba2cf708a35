// What vector code needs beyond plain loops, for any machine, as plain loops.
//
// The functions of this folder's headers are static members of a struct for each level, a set of
// vector instructions:
//   same(row, other)                       whether two rows have the same bytes
//   look_up(colors, indices, values)       the values of a row's palette indices
//   gather(table, row, group, block, words)  of a block of columns the words with the taps of a group
// CULE_VECTOR_LEVELS lists a machine's levels, the best first:
// LEVEL(name, struct, attribute of functions that are compiled for the level, whether the processor
// at hand has it). A compiler makes vector instructions of the loops in such functions, too.
#pragma once

#include "kernels/cpu/resize_tables.h"

namespace cule {

struct PlainVectors {
  static CULE_INLINE bool same(const uint8_t* row, const uint8_t* other) {
    return memcmp(row, other, kLinePixels) == 0;
  }
  static CULE_INLINE void look_up(const Colors& colors, const uint8_t* indices, uint8_t* values) {
    for (int i = 0; i < kLinePixels; ++i) values[i] = colors.of[indices[i]];
  }
  static CULE_INLINE void gather(const ColumnTable& table, const uint8_t* row, int group, int block,
                                 uint32_t* words) {
    row += group * ColumnTable::kGroup;
    const uint16_t* firsts = table.firsts.data() + block * ColumnTable::kBlock;
    for (int i = 0; i < ColumnTable::kBlock; ++i) memcpy(words + i, row + firsts[i], sizeof *words);
  }
};

#define CULE_PLAIN_LEVEL(LEVEL) LEVEL(plain, PlainVectors, , true)

}  // namespace cule
