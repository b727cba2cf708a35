// Paints whole scanlines on a CPU: turns bits along a scanline into pixels, a vector at a time.
//
// priority.h decides which object a pixel shows, and has the source.
#pragma once

#include "tia/chip/priority.h"

namespace cule {

// A bit for each pixel of a scanline: bit i of word w is pixel 64 * w + i. The last word is 0.
struct LineMask {
  static constexpr int kWords = 3;
  typedef uint64_t Vector __attribute__((vector_size(32)));
  union {
    Vector vector;
    uint64_t words[4];
  };
};
CULE_INLINE uint64_t any_of(const LineMask::Vector& mask) { return mask[0] | mask[1] | mask[2]; }

// Which pixels of a scanline show COLUP0, COLUP1 and COLUPF. A pixel is in at most one of them; a
// pixel in none shows the background.
struct LinePixelMasks {
  LineMask p0, p1, pf;

  CULE_INLINE void add(int word, const ColorWord<uint64_t>& shown) {
    p0.words[word] |= shown.p0;
    p1.words[word] |= shown.p1;
    pf.words[word] |= shown.pf;
  }
  CULE_INLINE bool operator==(const LinePixelMasks& other) const {
    return any_of((p0.vector ^ other.p0.vector) | (p1.vector ^ other.p1.vector) |
                  (pf.vector ^ other.pf.vector)) == 0;
  }
  // A byte of ones for each color that some pixel shows; the background is always seen.
  CULE_INLINE uint32_t colors_seen() const {
    return (any_of(p0.vector) ? 0xFFu : 0) | (any_of(p1.vector) ? 0xFF00u : 0) |
           (any_of(pf.vector) ? 0xFF0000u : 0) | 0xFF000000u;
  }
};

// A piece of a scanline: how its pixels look, apart from their objects, from pixel `begin` on. In
// one word, so that it is written and read by one access. From the lowest bit up: the colors of
// player 0, player 1, the playfield and the background, 8 bits each; whether the beam is on; the
// result of score_or_priority; and `begin`.
struct LinePiece {
  static constexpr int kPriorityShift = 1, kBeginShift = 16;
  uint64_t word;

  CULE_INLINE LinePiece() = default;
  CULE_INLINE LinePiece(uint32_t colors, bool lit, uint32_t priority, int begin)
      : word(colors | uint64_t{lit | priority << kPriorityShift |
                               static_cast<uint32_t>(begin) << kBeginShift} << 32) {}
  CULE_INLINE uint32_t colors() const { return static_cast<uint32_t>(word); }
  CULE_INLINE uint32_t flags() const { return static_cast<uint32_t>(word >> 32) & 0xFFFF; }
  CULE_INLINE bool is_lit() const { return word >> 32 & 1; }
  CULE_INLINE uint32_t priority() const { return flags() >> kPriorityShift; }
  CULE_INLINE int begin() const { return static_cast<int>(word >> (32 + kBeginShift)); }
  CULE_INLINE bool looks_like(const LinePiece& other) const {
    return (word ^ other.word) << (32 - kBeginShift) == 0;
  }
};

// A vector of pixels. `spread` makes $FF of each bit that is set, and 0 of the others.
struct Pixels16 {
  typedef uint8_t Vector __attribute__((vector_size(16)));
  typedef uint16_t Bits __attribute__((vector_size(16)));
  using Word = uint16_t;
  static constexpr Vector kBitOf = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  static constexpr Vector kNumbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

  static CULE_INLINE Vector spread(Word bits) {
    const Vector all = reinterpret_cast<Vector>(Bits{} + bits);
    const Vector bytes = CULE_SHUFFLE(Vector, all, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    return reinterpret_cast<Vector>((bytes & kBitOf) == kBitOf);
  }
};
struct Pixels32 {
  typedef uint8_t Vector __attribute__((vector_size(32)));
  typedef uint32_t Bits __attribute__((vector_size(32)));
  using Word = uint32_t;
  static constexpr Vector kBitOf = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                                    1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  static constexpr Vector kNumbers = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                      11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                      22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

  static CULE_INLINE Vector spread(Word bits) {
    const Vector all = reinterpret_cast<Vector>(Bits{} + bits);
    // Byte 18 is the same as byte 2. AVX2 moves bytes only within each 16.
    const Vector bytes =
        CULE_SHUFFLE(Vector, all, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 18, 18, 18, 18,
                     18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19);
    return reinterpret_cast<Vector>((bytes & kBitOf) == kBitOf);
  }
};

template <class Pixels>
struct LinePainter {
  using Vector = typename Pixels::Vector;
  static constexpr int kCount = static_cast<int>(sizeof(Vector));
  static_assert(kLinePixels % kCount == 0);

  // Paints a scanline in which no color changes.
  static CULE_INLINE void paint(uint8_t* pixels, const LinePixelMasks& masks, uint32_t colors) {
    const PaletteFill fill(colors);
    for (int x = 0; x < kLinePixels; x += kCount) store(pixels + x, fill.chunk(masks, x));
  }

  // Paints a scanline of several pieces.
  static CULE_INLINE void paint(uint8_t* pixels, const LinePixelMasks& masks,
                                const LinePiece* pieces, int count) {
    int x = 0;
    for (int i = 0; i < count; ++i) {
      const int begin = pieces[i].begin();
      const int end = i + 1 < count ? pieces[i + 1].begin() : kLinePixels;
      const PaletteFill fill(pieces[i].colors());
      if (x > begin) {  // in the vector that has been painted last
        uint8_t* at = pixels + x - kCount;
        store(at, merge(load(at), fill.chunk(masks, x - kCount), begin - (x - kCount)));
      }
      for (; x < end; x += kCount) store(pixels + x, fill.chunk(masks, x));
    }
  }

 private:
  struct PaletteFill {
    Vector bk, p0, p1, pf;  // the background, and the bits in which the others differ from it

    CULE_INLINE explicit PaletteFill(uint32_t colors)
        : bk(all_of(colors >> 24)), p0(all_of(colors) ^ bk), p1(all_of(colors >> 8) ^ bk),
          pf(all_of(colors >> 16) ^ bk) {}
    static CULE_INLINE Vector all_of(uint32_t color) {
      using Word = typename Pixels::Word;
      constexpr Word kOnes = static_cast<Word>(0x01010101);
      return reinterpret_cast<Vector>(typename Pixels::Bits{} +
                                      static_cast<Word>((color & 0xFF) * kOnes));
    }
    // The pixels from `x` on, which is a multiple of kCount.
    CULE_INLINE Vector chunk(const LinePixelMasks& masks, int x) const {
      return bk ^ (p0 & spread(masks.p0.words, x)) ^ (p1 & spread(masks.p1.words, x)) ^
             (pf & spread(masks.pf.words, x));
    }
    static CULE_INLINE Vector spread(const uint64_t* mask, int x) {
      typename Pixels::Word bits;
      memcpy(&bits, reinterpret_cast<const uint8_t*>(mask) + x / 8, sizeof bits);
      return Pixels::spread(bits);
    }
  };

  static CULE_INLINE void store(uint8_t* to, const Vector& pixels) {
    memcpy(to, &pixels, sizeof pixels);
  }
  static CULE_INLINE Vector load(const uint8_t* from) {
    Vector pixels;
    memcpy(&pixels, from, sizeof pixels);
    return pixels;
  }
  // The first `count` pixels of `before`, and the others of `after`.
  static CULE_INLINE Vector merge(const Vector& before, const Vector& after, int count) {
    const Vector old =
        reinterpret_cast<Vector>(Pixels::kNumbers < Vector{} + static_cast<uint8_t>(count));
    return (before & old) | (after & ~old);
  }
};

}  // namespace cule
