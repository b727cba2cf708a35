// A view that draws palette indices into an env's two pictures, and latches collisions on the way.
#pragma once

#include "tia/line_cache.h"
#include "tia/priority.h"

namespace cule {

struct PictureView {
  static constexpr bool kDraws = true;
  uint8_t* pictures;       // [2][stride]; a picture is [height][160]
  uint32_t stride;
  int height;
  LineCache cache;

  CULE_INLINE uint8_t* row(const TiaState& tia, int line) const {
    return pictures + tia.front * stride + static_cast<uint32_t>(line * kLinePixels);
  }
  static CULE_INLINE void fill(uint8_t* row, int begin, int end, uint32_t color) {
    for (int x = begin; x < end; ++x) row[x] = static_cast<uint8_t>(color);
  }

  CULE_INLINE void objects_changed(uint32_t objects) { cache.stale |= objects; }

  CULE_INLINE void dark(const TiaState& tia, int line, int begin, int end) {
    if (line < height) fill(row(tia, line), begin, end, 0);
  }
  CULE_INLINE void comb(const TiaState& tia, int line, int begin) {
    if (line < height) fill(row(tia, line), begin, 8, 0);
  }

  CULE_HD void grey_out(const TiaState& tia, int first_line) {
    for (int line = first_line; line < height; ++line) {
      uint8_t* pixels = row(tia, line);
      for (int x = 0; x < kLinePixels; ++x) pixels[x] = (pixels[x] & 0x0F) >> 1;
    }
  }

  CULE_HD void clear() {
    for (uint32_t i = 0; i < 2 * stride; ++i) pictures[i] = 0;
  }

  // Every run of set bits of `pixels` in `color`.
  static CULE_HD inline void fill_runs(uint8_t* row, uint64_t pixels, uint32_t color) {
    while (pixels) {
      const int begin = count_trailing_zeros(pixels);
      const uint64_t rest = ~(pixels >> begin);
      const int end = rest == 0 ? 64 : begin + count_trailing_zeros(rest);
      fill(row, begin, end, color);
      pixels = end >= 64 ? 0 : pixels >> end << end;
    }
  }

  CULE_HD void span(TiaState& tia, int line, int begin, int end) {
    if (line >= height) return;
    if (cache.stale) cache.refresh(tia);
    uint8_t* pixels = row(tia, line);
    fill(pixels, begin, end, tia.colubk);
    for (int word = begin / LineCache::kBits; word * LineCache::kBits < end; ++word) {
      const LineWord<uint64_t> objects = cache.piece(word, begin, end);
      uint64_t any = 0;
      for (uint32_t object = 0; object < kNumTiaObjects; ++object) any |= objects.bits[object];
      if (any == 0) continue;
      tia.collisions |= static_cast<uint16_t>(find_collisions(objects));
      const ColorWord<uint64_t> colors = resolve_priority(tia, objects, word * LineCache::kBits);
      uint8_t* at = pixels + word * LineCache::kBits;
      fill_runs(at, colors.pf, tia.colupf);
      fill_runs(at, colors.p1, tia.colup[1]);
      fill_runs(at, colors.p0, tia.colup[0]);
    }
  }
};

}  // namespace cule
