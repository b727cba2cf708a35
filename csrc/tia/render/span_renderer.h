// The renderer: a view that draws palette indices into an env's two pictures, and latches
// collisions. A CPU draws whole pictures with another one (scanline_renderer.h).
//
// The rules of the chip are in draw.h, priority.h and collision_latches.h, with their sources. What
// differs here is only the order of the work: pixels are painted in groups, and collisions latched
// late.
#pragma once

#include "tia/chip/collision_latches.h"
#include "tia/chip/draw.h"
#include "tia/chip/priority.h"
#include "tia/render/line_cache.h"
#include "tia/render/palette_fill.h"
#include "tia/render/pictures.h"

namespace cule {

// Whether a scanline that looks like the one above shares its row, and where scanlines are painted.
// kOwnRows: every scanline has its own row, and is painted there. This is necessary if lines of
//   older frames may show through, as drawing one scanline must not change another.
// kOnCanvas: scanlines share rows, and are painted on a canvas first. All of each scanline must be
//   drawn.
enum class Painting { kOwnRows, kOnCanvas };

template <Painting kPainting>
struct SpanRendererOf {
  static constexpr bool kSeesColors = true;
  static constexpr bool kShares = kPainting != Painting::kOwnRows;
  using Word = LineBits;
  using Cache = LineCache<Word>;
  // How a part of a scanline looks, apart from its objects.
  struct Look {
    uint32_t colors, flags;
    CULE_INLINE bool operator==(const Look& other) const {
      return colors == other.colors && flags == other.flags;
    }
  };
  // The flags of a Look: the beam is on; the comb of HMOVE is black; collisions no longer count.
  // From bit kCtrlpfShift on, the result of score_or_priority.
  static constexpr uint32_t kLit = 1, kCombed = 2, kCleared = 4;
  static constexpr int kCtrlpfShift = 3;
  static constexpr int kNoLine = -2;

  Pictures pictures;
  uint32_t front;  // the picture that is drawn into: that of the current frame, or of the last one
  int height;
  Cache cache;
  uint8_t* canvas;  // room for a scanline

  CULE_INLINE SpanRendererOf(const Pictures& shown, uint32_t front, int lines,
                            const typename Cache::Room& room, uint8_t* canvas = nullptr)
      : pictures(shown), front(front), height(lines), cache{room}, canvas(canvas) {}

  // Begins a frame's picture. It overwrites the frame before the last one.
  CULE_INLINE void begin_picture() {
    front ^= 1;
    line_ = kNoLine;
  }

  CULE_INLINE void objects_changed(uint32_t objects) { cache.objects_changed(objects); }

  // The pixels shown so far must no longer set latches.
  CULE_INLINE void collisions_cleared() { look_.flags |= kCleared; }

  CULE_HD void grey_out(int first_line) {
    for (int line = first_line; line < height; ++line) {
      uint8_t* pixels = pictures.own_row(front, line);
      for (int x = 0; x < kLinePixels; ++x) pixels[x] = (pixels[x] & 0x0F) >> 1;
    }
  }

  CULE_HD void clear() {
    for (uint32_t i = 0; i < 2 * pictures.stride; ++i) pictures.pixels[i] = 0;
    for (uint32_t i = 0; i < 2 * Pictures::kRows; ++i) pictures.row_of[i] = static_cast<uint8_t>(i);
  }

  // Shows pixels [begin, end) of a scanline (draw.h). The comb of HMOVE is painted up to its eighth
  // pixel at once. If rows are shared, pixels wait to be painted together with those that follow on
  // the same scanline, until the Look changes. Otherwise they are painted at once.
  CULE_INLINE void show(TiaState& tia, int line, int begin, int end) {
    if (line >= height) return;
    Look look = look_of(tia);
    const bool goes_on = line == line_;
    if (begin >= kCombPixels) {  // the pixels after the comb keep the flag of the pixels before
      look.flags = (look.flags & ~kCombed) | (goes_on ? look_.flags & kCombed : 0);
    }
    if (!goes_on || !(look == look_)) {
      if (kShares) flush(tia);
      if (!goes_on) cache.begin_line();
      line_ = line;
      look_ = look;
      begin_ = begin;
    }
    end_ = end;
    if (look.flags & kLit) cache.refresh(tia, begin);
    if (!kShares) flush(tia);
  }

  // The row that the scanline on the canvas belongs to. Null if that row has already been returned.
  // A scanline is on the canvas once flush() has been called at its end.
  CULE_INLINE uint8_t* take_painted() {
    const int line = painted_;
    painted_ = kNoLine;
    return line != kNoLine ? pictures.own_row(front, line) : nullptr;
  }

  // Paints the pixels that have been shown, and latches their collisions.
  CULE_INLINE void flush(TiaState& tia) {
    if (begin_ == end_) return;
    const bool whole = begin_ == 0 && end_ == kLinePixels;
    const bool alike = kShares && whole && cache.changed == 0 && line_ == last_line_ + 1 &&
                       look_ == last_;
    last_line_ = whole ? line_ : kNoLine;
    if (alike) {
      pictures.row_number(front, line_) = static_cast<uint8_t>(last_row_);
      tia.collisions |= static_cast<uint16_t>(last_collisions_);
      begin_ = end_;
      return;
    }
    last_row_ = line_;
    pictures.row_number(front, line_) = static_cast<uint8_t>(line_);
    uint8_t* pixels = pictures.own_row(front, line_);
    if (kPainting == Painting::kOnCanvas) pixels = canvas;
    const bool lit = look_.flags & kLit, combed = look_.flags & kCombed;
    const PaletteFill<Word> fill(lit ? look_.colors : 0);
    const int painted_end = combed && end_ < kCombPixels ? kCombPixels : end_;
    uint32_t collisions = 0;
#pragma unroll 1
    for (int word = begin_ / Cache::kBits; word * Cache::kBits < painted_end; ++word) {
      const int first = word * Cache::kBits, to_end = painted_end - first;
      const int low = begin_ > first ? begin_ - first : 0;
      const int high = to_end < Cache::kBits ? to_end : Cache::kBits;
      ColorWord<Word> shown{};
      if (lit) shown = colors_of(word, collisions);
      paint(pixels + first, shown, fill, low, high, combed && word == 0);
    }
    if (!(look_.flags & kCleared)) tia.collisions |= static_cast<uint16_t>(collisions);
    painted_ = line_;
    begin_ = end_;
    if (!whole) return;
    cache.changed = 0;
    last_ = look_;
    last_collisions_ = collisions;
  }

 private:
  // Sixteen pixels in parts of a Word, written to memory with one access.
  static constexpr int kChunk = 16, kParts = kChunk / static_cast<int>(sizeof(Word));
  static constexpr int kPartPixels = kChunk / kParts;
  struct alignas(kChunk) Chunk {
    Word parts[kParts];
  };

  // The pixels that have been shown but not painted yet: their scanline, range and look.
  int line_ = kNoLine, begin_ = 0, end_ = 0;
  Look look_ = {};
  // The last scanline, if it was painted in one piece. The next one usually looks the same.
  int last_line_ = kNoLine, last_row_ = 0;
  Look last_ = {};
  uint32_t last_collisions_ = 0;
  int painted_ = kNoLine;  // which scanline is on the canvas

  static CULE_INLINE Look look_of(const TiaState& tia) {
    const uint32_t lit = tia.vblank & 2 ? 0 : kLit, combed = tia.hmove_blank ? kCombed : 0;
    return {tia.colup.word | static_cast<uint32_t>(tia.colupf) << 16 |
                static_cast<uint32_t>(tia.colubk) << 24,
            lit | combed | score_or_priority(tia) << kCtrlpfShift};
  }

  // Bits [low, high) of the sixteen of a chunk. `low` and `high` may be outside it.
  static CULE_INLINE uint32_t pixels_between(int low, int high) {
    const uint32_t below_high = high >= kChunk ? 0xFFFFu : (1u << high) - 1;
    return low <= 0 ? below_high : below_high & ~((1u << low) - 1);
  }

  // The pixels of `chunk` in `range`, and those of `old` elsewhere.
  static CULE_INLINE Chunk merge(const Chunk& old, Chunk chunk, uint32_t range) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const Word differing = chunk.parts[i] ^ old.parts[i];
      chunk.parts[i] = old.parts[i] ^ (differing & spread_bits(range >> kPartPixels * i));
    }
    return chunk;
  }

  // Paints pixels [low, high) of a word. `pixels` is where the word's pixel 0 goes. `combed` makes
  // the pixels of the comb black.
  CULE_INLINE void paint(uint8_t* pixels, const ColorWord<Word>& shown,
                         const PaletteFill<Word>& fill, int low, int high, bool combed) {
#pragma unroll 1
    for (int x = low & -kChunk; x < high; x += kChunk) {
      const uint32_t bits0 = static_cast<uint32_t>(shown.p0 >> x);
      const uint32_t bits1 = static_cast<uint32_t>(shown.p1 >> x);
      const uint32_t bitsf = static_cast<uint32_t>(shown.pf >> x);
      Chunk chunk;
      fill.paint(bits0, bits1, bitsf, chunk.parts);
      if (combed && x == 0) {
#pragma unroll
        for (int i = 0; i < kCombPixels / kPartPixels; ++i) chunk.parts[i] = 0;
      }
      Chunk* out = reinterpret_cast<Chunk*>(pixels + x);
      if (x < low || x + kChunk > high) {
        chunk = merge(*out, chunk, pixels_between(low - x, high - x));
      }
      *out = chunk;
    }
  }

  // The color of each pixel to be painted in `word`. Adds the collisions of these pixels.
  CULE_INLINE ColorWord<Word> colors_of(int word, uint32_t& collisions) const {
    const LineWord<Word> objects = cache.piece(word, begin_, end_);
    Word any = 0, several = 0;
#pragma unroll
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      several |= any & objects.bits[object];
      any |= objects.bits[object];
    }
    if (any == 0) return {};
    if (several) collisions |= find_collisions(objects);
    return resolve_priority(look_.flags >> kCtrlpfShift, objects, word * Cache::kBits);
  }
};

// Paints every pixel as soon as it is shown.
using SpanRenderer = SpanRendererOf<Painting::kOwnRows>;

}  // namespace cule
