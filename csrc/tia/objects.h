// The five movable objects and the playfield, each as bits along a scanline: bit i of a word is
// pixel `first + i`.
//
// `Word` is what the caller draws with: 64 bits on the CPU (three words a line), 32 on a GPU (one
// of five words a thread). Source: Stella Programmer's Guide, "NUSIZ0", "RESP0", "PF0"; double and
// quadruple players start one pixel late, as on a chip.
#pragma once

#include "tia/state.h"

namespace cule {

template <class Word>
struct LineWord {
  Word bits[kNumTiaObjects];
};

// Every bit of an 8-bit pattern twice, four times.
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

// `pattern` (up to 32 pixels wide), its first pixel at `start` (0 to 159), as seen in the word that
// begins at `first`; what leaves the line at the right enters it at the left.
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

// The copies that NUSIZx asks for: the distances of the second and the third, in units of 16
// pixels; 0: none.
CULE_INLINE constexpr uint32_t copy_distances(uint32_t nusiz) {
  constexpr uint32_t kSecond = 0 | 1 << 4 | 2 << 8 | 1 << 12 | 4 << 16 | 0 << 20 | 2 << 24 |
                               0u << 28;
  constexpr uint32_t kThird = 0 | 0 << 4 | 0 << 8 | 2 << 12 | 0 << 16 | 0 << 20 | 4 << 24 |
                              0u << 28;
  const uint32_t shift = (nusiz & 7) * 4;
  return (kSecond >> shift & 0x0F) | (kThird >> shift & 0x0F) << 4;
}

// Where a movable object and its copies are: the first copy's pixels are [position, position +
// width), from 160 on at the line's left end. Width 0: it is off.
struct Extent {
  int position;
  uint32_t width;
  uint32_t distances;  // as copy_distances has them; 0 for all that are wider than 8 pixels
  bool skip_first;
};

// How many pixels wide a player is, by the lowest three bits of NUSIZx. Those of more than
// kPlayerPixels have no copies.
constexpr uint32_t kPlayerPixels = 8;
CULE_INLINE uint32_t player_width(uint32_t size) {
  return size == 5 ? 16 : size == 7 ? 32 : kPlayerPixels;
}

// Where an object is while it is on. Cosmic Ark's stars (motion.h) are another matter.
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

CULE_INLINE Extent player_extent(const TiaState& tia, uint32_t which) {
  Extent extent = player_place(tia, which);
  if (!player_on(tia, which)) extent.width = 0;
  return extent;
}
CULE_INLINE Extent missile_extent(const TiaState& tia, uint32_t which) {
  Extent extent = missile_place(tia, which);
  const MissileShape shape = which == 0 ? static_cast<MissileShape>(tia.missile0_shape)
                                        : kMissileNormal;
  if (shape == kMissileStretched && (extent.width & 5)) extent.width *= 2;  // of 1, 2, 4 and 8
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

// The pixels of a player that is `width` wide, whose pixels are `pattern` when it is 8 wide.
CULE_INLINE uint32_t widened(uint32_t pattern, uint32_t width) {
  if (width == kPlayerPixels) return pattern;
  return width == 2 * kPlayerPixels ? double_bits(pattern) : quadruple_bits(pattern);
}

// The pixels of one copy of a movable object, which is `width` wide, and, if it is a player, shows
// `graphics`.
CULE_INLINE uint32_t pattern_of(const TiaState& tia, uint32_t object, uint32_t width,
                                uint32_t graphics) {
  if (object > kPlayer1 || width == 0) return (1u << width) - 1;
  return widened(tia.refp[object] ? graphics : reverse_byte(graphics), width);
}
CULE_INLINE uint32_t pattern_of(const TiaState& tia, uint32_t object, uint32_t width) {
  const uint32_t graphics = object > kPlayer1 ? 0 : shown_graphics(tia, object);
  return pattern_of(tia, object, width, graphics);
}

// Calls `body(start)` for each copy of an object that is on, with where its first pixel is (0 to
// 159).
template <class Body>
CULE_INLINE void for_each_start(const Extent& extent, const Body& body) {
  // One nibble more than there are distances: the first copy's, 0.
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

// Calls `body(pattern, width, start)` for each copy that a movable object shows: its pixels, how
// many they are, up to 32, and where the first one is.
template <class Body>
CULE_INLINE void for_each_copy(const TiaState& tia, uint32_t object, const Body& body) {
  const Extent extent = extent_of(tia, object);
  if (extent.width == 0) return;
  const uint32_t pattern = pattern_of(tia, object, extent.width);
  for_each_start(extent, [&](int start) CULE_INLINE_LAMBDA {
    body(pattern, static_cast<int>(extent.width), start);
  });
}

// All of a movable object that the word that begins at `first` shows.
template <class Word>
CULE_INLINE Word movable_word(const TiaState& tia, uint32_t object, int first) {
  Word word = 0;
  for_each_copy(tia, object, [&](uint32_t pattern, int, int start) CULE_INLINE_LAMBDA {
    word |= place<Word>(pattern, start, first);
  });
  return word;
}

// PF0, PF1 and PF2 in display order: PF0's high nibble from bit 4 up, PF1 from bit 7 down, PF2 from
// bit 0 up.
CULE_INLINE uint32_t set_playfield(uint32_t playfield, uint32_t reg, uint32_t value) {
  if (reg == tia_write::PF0) return (playfield & 0xFFFF0) | value >> 4;
  if (reg == tia_write::PF1) return (playfield & 0xFF00F) | reverse_byte(value) << 4;
  return (playfield & 0x00FFF) | value << 12;
}

CULE_INLINE uint32_t reverse_playfield(uint32_t playfield) {
  return reverse_byte(playfield & 0xFF) << 12 | reverse_byte(playfield >> 8 & 0xFF) << 4 |
         reverse_byte(playfield >> 16 & 0xFF) >> 4;
}

// The playfield's 40 bits across the line, the leftmost lowest.
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

// RESPx while a copy of the player is about to start (within its 4-clock delay), is being drawn, or
// neither.
enum class ResetPhase : uint32_t { kIdle, kDelay, kDrawing };

// A bit for each 16 pixels at which a copy of a player starts, a byte for each size.
constexpr uint64_t starts_by_size() {
  uint64_t starts = 0;
  for (uint32_t size = 0; size < 8; ++size) {
    const uint32_t distances = copy_distances(size);
    const uint32_t second = distances & 0x0F, third = distances >> 4;
    starts |= uint64_t{1u | 1u << second | 1u << third} << 8 * size;
  }
  return starts;
}

// Without a branch or a loop: programs that show many players strobe RESPx on every scanline.
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
