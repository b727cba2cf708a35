// A view that draws palette indices into an env's two pictures, and latches collisions on the way.
#pragma once

#include "tia/line_cache.h"
#include "tia/priority.h"

namespace cule {

struct PictureView {
  static constexpr bool kSeesColors = true;
  uint8_t* pictures;       // [2][stride]; a picture is [height][160]
  uint32_t stride;
  int height;
  LineCache cache;

  CULE_INLINE uint8_t* row(const TiaState& tia, int line) const {
    return pictures + tia.front * stride + static_cast<uint32_t>(line * kLinePixels);
  }
  static CULE_INLINE void fill(uint8_t* row, int begin, int end, uint32_t color) {
    const uint32_t four = four_of(color);
    int x = begin;
    for (; x < end && (x & 3); ++x) row[x] = static_cast<uint8_t>(color);
    for (; x + 4 <= end; x += 4) *reinterpret_cast<uint32_t*>(row + x) = four;
    for (; x < end; ++x) row[x] = static_cast<uint8_t>(color);
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

  // Four pixels' worth of 0x00 or 0xFF bytes from four bits.
  static CULE_INLINE uint32_t spread(uint32_t bits) { return ((bits & 0x0F) * 0x00204081u & 0x01010101u) * 0xFFu; }
  static CULE_INLINE uint32_t four_of(uint32_t color) { return color * 0x01010101u; }

  // The pixels of [begin, end) that fall into `word` and are not background, four at a time over what is there.
  CULE_INLINE void draw_word(TiaState& tia, uint8_t* pixels, int word, int begin, int end) {
    const int first = word * LineCache::kBits;
    const LineWord<uint64_t> objects = cache.piece(word, begin, end);
    uint64_t any = 0;
#pragma unroll
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) any |= objects.bits[object];
    if (any == 0) return;
    tia.collisions |= static_cast<uint16_t>(find_collisions(objects));
    const ColorWord<uint64_t> colors = resolve_priority(tia, objects, first);
    const uint32_t p0 = four_of(tia.colup[0]), p1 = four_of(tia.colup[1]), pf = four_of(tia.colupf);
    for (int x = 0; any >> x; x += 4) {
      if ((any >> x & 0x0F) == 0) continue;
      const uint32_t on0 = spread(static_cast<uint32_t>(colors.p0 >> x)), on1 = spread(static_cast<uint32_t>(colors.p1 >> x));
      const uint32_t onf = spread(static_cast<uint32_t>(colors.pf >> x));
      uint32_t* out = reinterpret_cast<uint32_t*>(pixels + first + x);
      *out = (p0 & on0) | (p1 & on1) | (pf & onf) | (*out & ~(on0 | on1 | onf));
      if (x == 60) break;
    }
  }

  CULE_HD inline void span(TiaState& tia, int line, int begin, int end) {
    if (line >= height) return;
    if (cache.stale) cache.refresh(tia);
    uint8_t* pixels = row(tia, line);
    fill(pixels, begin, end, tia.colubk);
    for (int word = 0; word < LineCache::kWords; ++word) {
      if (begin < (word + 1) * LineCache::kBits && end > word * LineCache::kBits) draw_word(tia, pixels, word, begin, end);
    }
  }
};

}  // namespace cule
