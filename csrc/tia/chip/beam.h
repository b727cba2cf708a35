// Where the beam is, and how its movement alone changes the TIA's state: at the end of a visible
// scanline, and after the comb, the black pixels at the left of a line with HMOVE. draw.h moves the
// beam piece by piece, and draws. move_beam moves it any distance in one step, without drawing.
//
// Source: ale-py, whose rules for the comb and for the stars of Cosmic Ark (motion.h) it follows.
#pragma once

#include "tia/chip/motion.h"

namespace cule {

constexpr int kCombPixels = 8;  // black after HMOVE
constexpr int kCombEnd = kHblankClocks + kCombPixels;

// As a color clock: the beam need not move.
constexpr int32_t kNoClock = -1;

// Whether the beam must move to reach `clock`. If so, limits `clock` to the end of the picture.
CULE_INLINE bool has_way_to(const TiaState& tia, const TiaFormat& format, int32_t& clock) {
  if (clock < format.first_clock || tia.cursor >= format.last_clock || tia.cursor >= clock)
    return false;
  if (clock > format.last_clock) clock = format.last_clock;
  return true;
}

// How many color clocks the cursor is after the start of its scanline: all 228 at the line's end,
// until that has been handled.
CULE_INLINE int clocks_into_line(const TiaState& tia) { return kClocksPerLine - tia.line_left; }

// Ends `lines` visible scanlines, one after the other: CTRLPF's mirroring of the playfield takes
// effect, the players' first copies show again, and the stars of Cosmic Ark move. Returns the bits
// of the objects that look different.
CULE_INLINE uint32_t end_lines(TiaState& tia, int lines) {
  uint32_t changed = static_cast<uint32_t>(tia.reflect_now != (tia.ctrlpf & 1)) << kPlayfield |
                     static_cast<uint32_t>(tia.skip_first[0] != 0) << kPlayer0 |
                     static_cast<uint32_t>(tia.skip_first[1] != 0) << kPlayer1;
  tia.reflect_now = tia.ctrlpf & 1;
  tia.skip_first.word = 0;
  if (tia.stars_on) {
#pragma unroll 1
    for (int line = 0; line < lines; ++line) move_stars(tia);
    changed |= 1u << kMissile0;
  }
  return changed;
}

// Moves the beam to `clock`, across any number of lines. Changes the state as draw_until does.
// Returns the bits of the objects that look different there.
CULE_INLINE uint32_t move_beam(TiaState& tia, const TiaFormat& format, int32_t clock) {
  if (!has_way_to(tia, format, clock)) return 0;
  const int from = clocks_into_line(tia), to = from + (clock - tia.cursor);
  // The end of a line is handled when the beam moves past it.
  const int lines = (to - 1) / kClocksPerLine, into_line = to - lines * kClocksPerLine;
  tia.cursor = clock;
  tia.line_left = kClocksPerLine - into_line;
  if (lines == 0 ? from < kCombEnd && into_line >= kCombEnd
                 : from < kCombEnd || lines > 1 || into_line >= kCombEnd)
    tia.hmove_blank = 0;
  return lines ? end_lines(tia, lines) : 0;
}

}  // namespace cule
