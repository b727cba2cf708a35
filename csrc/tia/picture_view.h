// A view that draws palette indices into an env's two pictures, and latches collisions on the way.
#pragma once

#include "tia/collision.h"
#include "tia/draw.h"
#include "tia/line_cache.h"
#include "tia/pictures.h"
#include "tia/priority.h"

namespace cule {

struct PictureView {
  static constexpr bool kSeesColors = true;
  using Word = LineBits;
  using Cache = LineCache<Word>;
  // What a whole scanline looks like, but for its objects.
  struct Look {
    uint32_t colors, flags, collisions;
  };
  static constexpr int kNoLine = -2;

  Pictures pictures;
  int height;
  // Whether a scanline that looks like the one above shares its row. Where lines of older frames
  // may show through, each has its own, before and after: one that is drawn must leave the others.
  bool shares_rows;
  Cache cache;
  // The last scanline, where it was shown in one piece: the next one mostly looks the same.
  int last_line = kNoLine, last_row = 0;
  bool unchanged = false;  // no object has changed since
  Look last = {};

  CULE_INLINE PictureView(const Pictures& shown, int lines, bool shares, const Cache::Room& room)
      : pictures(shown), height(lines), shares_rows(shares), cache{room} {}

  CULE_INLINE void objects_changed(uint32_t objects) {
    cache.objects_changed(objects);
    unchanged &= objects == 0;
  }

  CULE_HD void grey_out(const TiaState& tia, int first_line) {
    for (int line = first_line; line < height; ++line) {
      uint8_t* pixels = pictures.own_row(tia.front, line);
      for (int x = 0; x < kLinePixels; ++x) pixels[x] = (pixels[x] & 0x0F) >> 1;
    }
  }

  CULE_HD void clear() {
    for (uint32_t i = 0; i < 2 * pictures.stride; ++i) pictures.pixels[i] = 0;
    for (uint32_t i = 0; i < 2 * Pictures::kRows; ++i) pictures.row_of[i] = static_cast<uint8_t>(i);
  }

  // Pixels [begin, end) of a scanline as draw.h says; black ones after HMOVE reach to the eighth
  // pixel at once.
  CULE_INLINE void show(TiaState& tia, int line, int begin, int end) {
    if (line >= height) return;
    const bool whole = begin == 0 && end == kLinePixels;
    const bool lit = !(tia.vblank & 2), combed = tia.hmove_blank && begin < kCombPixels;
    const uint32_t colors = tia.colup.word | static_cast<uint32_t>(tia.colupf) << 16 |
                            static_cast<uint32_t>(tia.colubk) << 24;
    const uint32_t flags = static_cast<uint32_t>(lit) | static_cast<uint32_t>(combed) << 1 |
                           (tia.ctrlpf & 6u) << 2;
    const bool alike = whole && unchanged && line == last_line + 1 && colors == last.colors &&
                       flags == last.flags;
    last_line = whole ? line : kNoLine;
    if (alike && shares_rows) {
      pictures.row_number(tia.front, line) = static_cast<uint8_t>(last_row);
      tia.collisions |= static_cast<uint16_t>(last.collisions);
      return;
    }
    last_row = line;
    pictures.row_number(tia.front, line) = static_cast<uint8_t>(line);
    uint8_t* pixels = pictures.own_row(tia.front, line);
    const Inks inks(tia, lit);
    const int painted_end = combed && end < kCombPixels ? kCombPixels : end;
    uint32_t collisions = 0;
    if (lit) cache.refresh(tia);
#pragma unroll 1
    for (int word = begin / Cache::kBits; word * Cache::kBits < painted_end; ++word) {
      const int first = word * Cache::kBits, to_end = painted_end - first;
      const int low = begin > first ? begin - first : 0;
      const int high = to_end < Cache::kBits ? to_end : Cache::kBits;
      ColorWord<Word> shown{};
      if (lit) shown = colors_of(tia, word, begin, end, collisions);
      paint(pixels + first, shown, inks, low, high, combed && word == 0);
    }
    tia.collisions |= static_cast<uint16_t>(collisions);
    if (!whole) return;
    unchanged = true;
    last = {colors, flags, collisions};
  }

 private:
  // Sixteen pixels, which memory takes in one go, in parts of a Word.
  static constexpr int kChunk = Cache::Room::kChunk, kParts = Cache::Room::kParts;
  static constexpr int kPartPixels = kChunk / kParts;
  struct alignas(kChunk) Chunk {
    Word parts[kParts];
  };

  // A Word of pixels of the background's color, and by which bits the other colors differ from it.
  struct Inks {
    Word bk, p0, p1, pf;
    CULE_INLINE Inks(const TiaState& tia, bool lit)
        : bk(lit ? all_of(tia.colubk) : 0), p0(all_of(tia.colup[0]) ^ bk),
          p1(all_of(tia.colup[1]) ^ bk), pf(all_of(tia.colupf) ^ bk) {}
    static CULE_INLINE Word all_of(uint32_t color) { return color * (~Word{0} / 0xFF); }
  };

  // Bits [low, high) of a chunk's sixteen, as far as it has them.
  static CULE_INLINE uint32_t pixels_between(int low, int high) {
    const uint32_t below_high = high >= kChunk ? 0xFFFFu : (1u << high) - 1;
    return low <= 0 ? below_high : below_high & ~((1u << low) - 1);
  }

  // The pixels of `chunk` that are in `range`, and the others of `old`.
  static CULE_INLINE Chunk merge(const Chunk& old, Chunk chunk, uint32_t range) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const Word differing = chunk.parts[i] ^ old.parts[i];
      chunk.parts[i] = old.parts[i] ^ (differing & spread_bits(range >> kPartPixels * i));
    }
    return chunk;
  }

  // The pixels of `chunk` that are in `range`, and the others of the one before, which was cut off.
  CULE_INLINE Chunk paint_on(const Chunk& chunk, uint32_t range) {
    Chunk old;
#pragma unroll
    for (int i = 0; i < kParts; ++i) old.parts[i] = cache.bits.painted(i);
    const Chunk merged = merge(old, chunk, range);
#pragma unroll
    for (int i = 0; i < kParts; ++i) cache.bits.painted(i) = merged.parts[i];
    return merged;
  }

  // Pixels [low, high) of a word, the first of which is at `pixels`; `combed` blackens those under
  // the comb.
  CULE_INLINE void paint(uint8_t* pixels, const ColorWord<Word>& shown, const Inks& inks, int low,
                         int high, bool combed) {
#pragma unroll 1
    for (int x = low & -kChunk; x < high; x += kChunk) {
      const uint32_t bits0 = static_cast<uint32_t>(shown.p0 >> x);
      const uint32_t bits1 = static_cast<uint32_t>(shown.p1 >> x);
      const uint32_t bitsf = static_cast<uint32_t>(shown.pf >> x);
      Chunk chunk;
#pragma unroll
      for (int i = 0; i < kParts; ++i) chunk.parts[i] = inks.bk;
      if ((bits0 | bits1 | bitsf) & 0xFFFF) {
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
          const int shift = kPartPixels * i;
          chunk.parts[i] ^= (inks.p0 & spread_bits(bits0 >> shift)) ^
                            (inks.p1 & spread_bits(bits1 >> shift)) ^
                            (inks.pf & spread_bits(bitsf >> shift));
        }
      }
      if (combed && x == 0) {
#pragma unroll
        for (int i = 0; i < kCombPixels / kPartPixels; ++i) chunk.parts[i] = 0;
      }
      Chunk* out = reinterpret_cast<Chunk*>(pixels + x);
      if (x < low || x + kChunk > high) {
        // Where all of a line is drawn, what comes before this piece has just been painted, and
        // what comes behind will be: nothing is read back.
        if (shares_rows) chunk = paint_on(chunk, pixels_between(low - x, kChunk));
        else chunk = merge(*out, chunk, pixels_between(low - x, high - x));
      }
      *out = chunk;
    }
  }

  // Which color each pixel of [begin, end) in `word` has. Adds its collisions.
  CULE_INLINE ColorWord<Word> colors_of(const TiaState& tia, int word, int begin, int end,
                                        uint32_t& collisions) const {
    const LineWord<Word> objects = cache.piece(word, begin, end);
    Word any = 0, several = 0;
#pragma unroll
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      several |= any & objects.bits[object];
      any |= objects.bits[object];
    }
    if (any == 0) return {};
    if (several) collisions |= find_collisions(objects);
    return resolve_priority(tia, objects, word * Cache::kBits);
  }
};

}  // namespace cule
