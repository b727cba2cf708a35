// What vector code needs beyond plain loops, as plain loops, for any machine.
//
// A level is a set of vector instructions. Each header of this folder has a struct for each level
// of a machine, with these functions:
//   same(row, other)                 whether two rows have the same bytes
//   look_up(colors, indices, values) the values of a row's palette indices; there is room for
//                                    ColumnTable::kWholeRow values
//   gather(table, row, group, block, words)
//                                    words with the taps of a group, for a block of columns
// CULE_VECTOR_LEVELS lists the levels of a machine, the best first: LEVEL(name, struct, attribute,
// supported). Functions with the attribute are compiled for the level's instructions, so that a
// compiler makes such instructions of their loops, too. `supported` says whether the processor at
// hand has them.
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
    for (int i = 0; i < ColumnTable::kBlock; i += 4) {
      const Words four = {word(row + firsts[i]), word(row + firsts[i + 1]),
                          word(row + firsts[i + 2]), word(row + firsts[i + 3])};
      memcpy(words + i, &four, sizeof four);
    }
  }

 private:
  // Four words are stored at once: a load of a vector would wait for stores of its parts.
  using Words = uint32_t __attribute__((vector_size(16)));
  static CULE_INLINE uint32_t word(const uint8_t* bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
  }
};

#define CULE_PLAIN_LEVEL(LEVEL) LEVEL(plain, PlainVectors, , true)

}  // namespace cule
