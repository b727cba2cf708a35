// An env's two pictures. A picture consists of palette indices, and for each scanline the number of
// the row that has its pixels.
//
// A scanline that looks like the one above it may share that scanline's row. Then nothing has to be
// written, and readers of the picture can tell that the line repeats. Rows are shared downwards
// only: a scanline uses its own row, or the row of a scanline above that uses its own.
//
// The chip has no such memory. This layout is the project's own.
#pragma once

#include "tia/chip/registers.h"

namespace cule {

// One of the two pictures, for reading.
struct Picture {
  const uint8_t* pixels;  // [height][160]
  const uint8_t* row_of;  // [Pictures::kRows]
  CULE_INLINE const uint8_t* row(uint32_t line) const {
    return pixels + row_of[line] * static_cast<uint32_t>(kLinePixels);
  }
};

struct Pictures {
  static constexpr uint32_t kRows = 256;  // more than the tallest picture needs

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
