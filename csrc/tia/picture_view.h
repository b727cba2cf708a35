// A view that draws palette indices into an env's two pictures, and latches collisions on the way.
#pragma once

#include "tia/collision.h"
#include "tia/draw.h"
#include "tia/line_cache.h"
#include "tia/priority.h"

namespace cule {

struct PictureView {
  static constexpr bool kSeesColors = true;
  uint8_t* pictures;       // [2][stride]; a picture is [height][160]
  uint32_t stride;
  int height;
  using Word = LineBits;
  using Cache = LineCache<Word>;
  Cache cache;

  CULE_INLINE uint8_t* row(const TiaState& tia, int line) const {
    return pictures + tia.front * stride + static_cast<uint32_t>(line * kLinePixels);
  }
  CULE_INLINE void objects_changed(uint32_t objects) { cache.objects_changed(objects); }

  CULE_HD void grey_out(const TiaState& tia, int first_line) {
    for (int line = first_line; line < height; ++line) {
      uint8_t* pixels = row(tia, line);
      for (int x = 0; x < kLinePixels; ++x) pixels[x] = (pixels[x] & 0x0F) >> 1;
    }
  }

  CULE_HD void clear() {
    for (uint32_t i = 0; i < 2 * stride; ++i) pictures[i] = 0;
  }

  // Sixteen pixels, which memory takes in one go.
  static constexpr int kChunk = 16;
  struct alignas(kChunk) Chunk {
    uint32_t fours[4];
  };

  // Four pixels' worth of 0x00 or 0xFF bytes from four bits.
  static CULE_INLINE uint32_t spread(uint32_t bits) { return ((bits & 0x0F) * 0x00204081u & 0x01010101u) * 0xFFu; }
  static CULE_INLINE uint32_t four_of(uint32_t color) { return color * 0x01010101u; }

  // Bits [low, high) of a chunk's sixteen, as far as it has them.
  static CULE_INLINE uint32_t pixels_between(int low, int high) {
    const uint32_t below_high = high >= kChunk ? 0xFFFFu : (1u << high) - 1;
    return low <= 0 ? below_high : below_high & ~((1u << low) - 1);
  }

  // Puts the chunk's pixels that are in `range` where they belong.
  static CULE_INLINE void store(uint8_t* at, Chunk chunk, uint32_t range) {
    Chunk* out = reinterpret_cast<Chunk*>(at);
    if (range != 0xFFFF) {
      const Chunk old = *out;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t in_range = spread(range >> 4 * i);
        chunk.fours[i] = (chunk.fours[i] & in_range) | (old.fours[i] & ~in_range);
      }
    }
    *out = chunk;
  }

  // Pixels [begin, end) of a scanline as draw.h says; black ones after HMOVE reach to the eighth pixel at once.
  CULE_INLINE void show(TiaState& tia, int line, int begin, int end) {
    if (line >= height) return;
    const bool lit = !(tia.vblank & 2), combed = tia.hmove_blank && begin < kCombPixels;
    const int shown_end = end;
    if (combed && end < kCombPixels) end = kCombPixels;
    uint8_t* pixels = row(tia, line);
    const uint32_t p0 = four_of(tia.colup[0]), p1 = four_of(tia.colup[1]), pf = four_of(tia.colupf);
    const uint32_t bk = lit ? four_of(tia.colubk) : 0;
#pragma unroll 1
    for (int word = begin / Cache::kBits; word * Cache::kBits < end; ++word) {
      const int first = word * Cache::kBits;
      if (lit) cache.refresh(tia, kAllObjects, word);
      const ColorWord<Word> colors = lit ? colors_of(tia, word, begin, shown_end) : ColorWord<Word>{};
#pragma unroll 1
      for (int x = 0; x < Cache::kBits; x += kChunk) {
        if (first + x >= end || first + x + kChunk <= begin) continue;
        const uint32_t bits0 = static_cast<uint32_t>(colors.p0 >> x), bits1 = static_cast<uint32_t>(colors.p1 >> x);
        const uint32_t bitsf = static_cast<uint32_t>(colors.pf >> x);
        Chunk chunk{{bk, bk, bk, bk}};
        if ((bits0 | bits1 | bitsf) & 0xFFFF) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const uint32_t on0 = spread(bits0 >> 4 * i), on1 = spread(bits1 >> 4 * i), onf = spread(bitsf >> 4 * i);
            chunk.fours[i] = (p0 & on0) | (p1 & on1) | (pf & onf) | (bk & ~(on0 | on1 | onf));
          }
        }
        if (combed && first + x == 0) chunk.fours[0] = chunk.fours[1] = 0;
        store(pixels + first + x, chunk, pixels_between(begin - first - x, end - first - x));
      }
    }
  }

  // Which color each pixel of [begin, end) in `word` has. Latches its collisions.
  CULE_INLINE ColorWord<Word> colors_of(TiaState& tia, int word, int begin, int end) const {
    const LineWord<Word> objects = cache.piece(word, begin, end);
    Word any = 0;
#pragma unroll
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) any |= objects.bits[object];
    if (any == 0) return {};
    tia.collisions |= static_cast<uint16_t>(find_collisions(objects));
    return resolve_priority(tia, objects, word * Cache::kBits);
  }
};

}  // namespace cule
