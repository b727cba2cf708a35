// The shapes of the five movable objects and the playfield. Each is given as bits along a scanline:
// bit i of a word is pixel `first + i`.
//
// The caller chooses `Word`: 64 bits on the CPU (three words a line), 32 bits on a GPU (five words
// a line).
//
// Source: Stella Programmer's Guide, "NUSIZ0", "RESP0", "PF0". Double and quadruple players start
// one pixel late, as on a chip. Cosmic Ark's stars follow ale-py (motion.h).
#pragma once

#include "tia/chip/state.h"

namespace cule {

template <class Word>
struct LineWord {
  Word bits[kNumTiaObjects];
};

// Repeat every bit of an 8-bit pattern: twice, or four times.
CULE_INLINE uint32_t double_bits(uint32_t byte) {
  byte = (byte | byte << 4) & 0x0F0F;
  byte = (byte | byte << 2) & 0x3333;
  byte = (byte | byte << 1) & 0x5555;
  return byte * 3;
}
CULE_INLINE uint32_t quadruple_bits(uint32_t byte) {
  byte = (byte | byte << 12) & 0x000F000F;
  byte = (byte | byte << 6) & 0x03030303;
  byte = (byte | byte << 3) & 0x11111111;
  return byte * 15;
}

// The part of `pattern` that the word beginning at pixel `first` shows. The pattern is up to 32
// pixels wide and starts at pixel `start` (0 to 159). What passes the line's right end continues at
// the left.
template <class Word>
CULE_INLINE Word place(uint32_t pattern, int start, int first) {
  constexpr int kBits = static_cast<int>(sizeof(Word) * 8);
  const int at = start - first;
  Word word = 0;
  if (at >= 0 && at < kBits) word = static_cast<Word>(pattern) << at;
  else if (at < 0 && at > -32) word = pattern >> -at;
  const int wrapped = at - kLinePixels;
  if (wrapped < 0 && wrapped > -32) word |= pattern >> -wrapped;
  return word;
}

// The distances of the second copy (low nibble) and the third copy (high nibble) from the first, as
// NUSIZx sets them, in units of 16 pixels. 0: no such copy.
CULE_INLINE constexpr uint32_t copy_distances(uint32_t nusiz) {
  constexpr uint32_t kSecond = 0 | 1 << 4 | 2 << 8 | 1 << 12 | 4 << 16 | 0 << 20 | 2 << 24 |
                               0u << 28;
  constexpr uint32_t kThird = 0 | 0 << 4 | 0 << 8 | 2 << 12 | 0 << 16 | 0 << 20 | 4 << 24 |
                              0u << 28;
  const uint32_t shift = (nusiz & 7) * 4;
  return (kSecond >> shift & 0x0F) | (kThird >> shift & 0x0F) << 4;
}

// Where a movable object and its copies are. The first copy has pixels [position, position +
// width); pixel 160 is pixel 0 again. Width 0: the object is off.
struct Extent {
  int position;
  uint32_t width;
  uint32_t distances;  // from copy_distances; 0 for the ball and players wider than 8 pixels
  bool skip_first;
};

// The width of a player in pixels, from the lowest three bits of NUSIZx. Players wider than
// kPlayerPixels have no copies.
constexpr uint32_t kPlayerPixels = 8;
CULE_INLINE uint32_t player_width(uint32_t size) {
  return size == 5 ? 16 : size == 7 ? 32 : kPlayerPixels;
}

// Where an object is while it is on, without Cosmic Ark's stars (motion.h).
CULE_INLINE Extent player_place(const TiaState& tia, uint32_t which) {
  const uint32_t size = tia.nusiz[which] & 7;
  const uint32_t width = player_width(size);
  const int position = position_of(tia, kPlayer0 + which) + (width != kPlayerPixels);
  return {position == kLinePixels ? 0 : position, width, copy_distances(size),
          tia.skip_first[which] != 0};
}
CULE_INLINE Extent missile_place(const TiaState& tia, uint32_t which) {
  return {position_of(tia, kMissile0 + which), 1u << (tia.nusiz[which] >> 4 & 3),
          copy_distances(tia.nusiz[which]), false};
}
CULE_INLINE Extent ball_place(const TiaState& tia) {
  return {position_of(tia, kBall), 1u << (tia.ctrlpf >> 4 & 3), 0, false};
}
CULE_INLINE Extent place_of(const TiaState& tia, uint32_t object) {
  switch (object) {
    case kPlayer0: case kPlayer1: return player_place(tia, object - kPlayer0);
    case kMissile0: case kMissile1: return missile_place(tia, object - kMissile0);
    default: return ball_place(tia);
  }
}

// Where an object is. Its width is 0 if it is off, and includes Cosmic Ark's stars.
CULE_INLINE Extent player_extent(const TiaState& tia, uint32_t which) {
  Extent extent = player_place(tia, which);
  if (!player_on(tia, which)) extent.width = 0;
  return extent;
}
CULE_INLINE Extent missile_extent(const TiaState& tia, uint32_t which) {
  Extent extent = missile_place(tia, which);
  const MissileShape shape = which == 0 ? static_cast<MissileShape>(tia.missile0_shape)
                                        : kMissileNormal;
  if (shape == kMissileStretched && (extent.width & 5)) extent.width *= 2;  // widths 1 and 4
  if (!missile_on(tia, which) || shape == kMissileHidden) extent.width = 0;
  return extent;
}
CULE_INLINE Extent ball_extent(const TiaState& tia) {
  Extent extent = ball_place(tia);
  if (!ball_on(tia)) extent.width = 0;
  return extent;
}
CULE_INLINE Extent extent_of(const TiaState& tia, uint32_t object) {
  switch (object) {
    case kPlayer0: case kPlayer1: return player_extent(tia, object - kPlayer0);
    case kMissile0: case kMissile1: return missile_extent(tia, object - kMissile0);
    default: return ball_extent(tia);
  }
}

// A player's `pattern` of 8 pixels, stretched to `width` pixels.
CULE_INLINE uint32_t widened(uint32_t pattern, uint32_t width) {
  if (width == kPlayerPixels) return pattern;
  return width == 2 * kPlayerPixels ? double_bits(pattern) : quadruple_bits(pattern);
}

// The pixels of one copy of a movable object that is `width` wide. A player shows `graphics`.
CULE_INLINE uint32_t pattern_of(const TiaState& tia, uint32_t object, uint32_t width,
                                uint32_t graphics) {
  if (object > kPlayer1 || width == 0) return (1u << width) - 1;
  return widened(tia.refp[object] ? graphics : reverse_byte(graphics), width);
}
CULE_INLINE uint32_t pattern_of(const TiaState& tia, uint32_t object, uint32_t width) {
  const uint32_t graphics = object > kPlayer1 ? 0 : shown_graphics(tia, object);
  return pattern_of(tia, object, width, graphics);
}

// Calls `body(start)` for each copy of an object. `start` is the copy's first pixel (0 to 159).
template <class Body>
CULE_INLINE void for_each_start(const Extent& extent, const Body& body) {
  // Adds a nibble for the first copy's distance, which is 0.
  uint32_t distances = extent.distances << 4;
  bool shown = !extent.skip_first;
#pragma unroll 1
  do {
    const int start = extent.position + static_cast<int>(distances & 0x0F) * 16;
    if (shown) body(start >= kLinePixels ? start - kLinePixels : start);
    shown = true;
    distances >>= 4;
  } while (distances);
}

// Calls `body(pattern, width, start)` for each copy that a movable object shows, with the copy's
// pixels, how many there are (up to 32), and where the first one is.
template <class Body>
CULE_INLINE void for_each_copy(const TiaState& tia, uint32_t object, const Body& body) {
  const Extent extent = extent_of(tia, object);
  if (extent.width == 0) return;
  const uint32_t pattern = pattern_of(tia, object, extent.width);
  for_each_start(extent, [&](int start) CULE_INLINE_LAMBDA {
    body(pattern, static_cast<int>(extent.width), start);
  });
}

// All pixels of a movable object in the word that begins at pixel `first`.
template <class Word>
CULE_INLINE Word movable_word(const TiaState& tia, uint32_t object, int first) {
  Word word = 0;
  for_each_copy(tia, object, [&](uint32_t pattern, int, int start) CULE_INLINE_LAMBDA {
    word |= place<Word>(pattern, start, first);
  });
  return word;
}

// TiaState::playfield after a write to PF0, PF1 or PF2. Its bits are in display order: PF0's bits 4
// to 7, PF1's bits 7 to 0, PF2's bits 0 to 7.
CULE_INLINE uint32_t set_playfield(uint32_t playfield, uint32_t reg, uint32_t value) {
  if (reg == tia_write::PF0) return (playfield & 0xFFFF0) | value >> 4;
  if (reg == tia_write::PF1) return (playfield & 0xFF00F) | reverse_byte(value) << 4;
  return (playfield & 0x00FFF) | value << 12;
}

CULE_INLINE uint32_t reverse_playfield(uint32_t playfield) {
  return reverse_byte(playfield & 0xFF) << 12 | reverse_byte(playfield >> 8 & 0xFF) << 4 |
         reverse_byte(playfield >> 16 & 0xFF) >> 4;
}

// The playfield's 40 bits across the line. The leftmost is bit 0.
CULE_INLINE uint64_t playfield_line(const TiaState& tia) {
  const uint32_t left = tia.playfield;
  return left | static_cast<uint64_t>(tia.reflect_now ? reverse_playfield(left) : left) << 20;
}

template <class Word>
CULE_INLINE Word playfield_word(uint64_t line, int first) {
  Word word = 0;
  for (int i = 0; i < static_cast<int>(sizeof(Word)) / 4; ++i) {
    const uint32_t quads = static_cast<uint32_t>(line >> (first / 4 + 8 * i)) & 0xFF;
    word |= static_cast<Word>(quadruple_bits(quads)) << 16 * i << 16 * i;
  }
  return word;
}

// The bits of pixels [begin, end) in the word that begins at `first`.
template <class Word>
CULE_INLINE Word pixels_in_word(int first, int begin, int end) {
  const int low = begin - first, high = end - first;
  const Word mask = low <= 0 ? ~Word{0} : ~Word{0} << low;
  return high < static_cast<int>(sizeof(Word) * 8) ? mask & ((Word{1} << high) - 1) : mask;
}

// What a player's copies do when RESPx comes. kDelay: a copy is about to start, within its delay of
// 4 color clocks. kDrawing: a copy is being drawn. kIdle: neither.
enum class ResetPhase : uint32_t { kIdle, kDelay, kDrawing };

// A byte for each of a player's sizes. Its bit i says whether a copy starts 16 * i pixels after the
// player's position.
constexpr uint64_t starts_by_size() {
  uint64_t starts = 0;
  for (uint32_t size = 0; size < 8; ++size) {
    const uint32_t distances = copy_distances(size);
    const uint32_t second = distances & 0x0F, third = distances >> 4;
    starts |= uint64_t{1u | 1u << second | 1u << third} << 8 * size;
  }
  return starts;
}

// The phase in which RESPx finds a player. Has no branch and no loop, as programs that show many
// players strobe RESPx on every scanline.
CULE_INLINE ResetPhase player_reset_phase(uint32_t nusiz, int old_position, int new_position) {
  constexpr uint64_t kStarts = starts_by_size();
  int distance = new_position - old_position;
  if (distance < 0) distance += kLinePixels;
  const uint32_t size = nusiz & 7;
  const uint32_t width = player_width(size);
  const bool wide = width != kPlayerPixels;
  const uint32_t since = static_cast<uint32_t>(wide ? distance : distance & 15);
  const uint32_t starts_of_size = static_cast<uint32_t>(kStarts >> 8 * size) & 0xFF;
  const bool starts = wide || starts_of_size >> (distance >> 4) & 1;
  if (!starts || since >= 4 + width) return ResetPhase::kIdle;
  return since < 4 ? ResetPhase::kDelay : ResetPhase::kDrawing;
}

}  // namespace cule
