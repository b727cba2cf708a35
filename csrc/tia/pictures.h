// An env's two pictures: palette indices, and for each scanline which row of its picture has its
// pixels.
//
// A scanline that looks like the one above it may share that one's row, so that nothing is written,
// and whoever looks at the picture sees that it repeats. Rows are shared downwards only: that of a
// scanline is its own, or that of one further up, which is its own.
#pragma once

#include "tia/registers.h"

namespace cule {

// One of them, as one looks at it.
struct Picture {
  const uint8_t* pixels;  // [height][160]
  const uint8_t* row_of;  // [Pictures::kRows]
  CULE_INLINE const uint8_t* row(uint32_t line) const {
    return pixels + row_of[line] * static_cast<uint32_t>(kLinePixels);
  }
};

struct Pictures {
  static constexpr uint32_t kRows = 256;  // of the tallest picture, and room to spare

  uint8_t* pixels;  // [2][stride]
  uint32_t stride;
  uint8_t* row_of;  // [2][kRows]

  CULE_INLINE uint8_t* own_row(uint32_t which, int line) const {
    return pixels + which * stride + static_cast<uint32_t>(line * kLinePixels);
  }
  CULE_INLINE uint8_t& row_number(uint32_t which, int line) const {
    return row_of[which * kRows + static_cast<uint32_t>(line)];
  }
  CULE_INLINE Picture operator[](uint32_t which) const {
    return {pixels + which * stride, row_of + which * kRows};
  }
};

}  // namespace cule
