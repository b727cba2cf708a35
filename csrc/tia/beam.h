// Where the beam is, and what of the TIA's state changes with it alone: where visible scanlines
// end, and behind the comb that HMOVE leaves at a line's left. draw.h moves it piece by piece,
// drawing; move_beam goes any way at once.
#pragma once

#include "tia/motion.h"

namespace cule {

constexpr int kCombPixels = 8;  // black after HMOVE
constexpr int kCombEnd = kHblankClocks + kCombPixels;

// Where the beam does not go on.
constexpr int32_t kNoClock = -1;

// Whether the beam has a way to go to `clock`, which is cut down to the picture's end.
CULE_INLINE bool has_way_to(const TiaState& tia, const TiaFormat& format, int32_t& clock) {
  if (clock < format.first_clock || tia.cursor >= format.last_clock || tia.cursor >= clock)
    return false;
  if (clock > format.last_clock) clock = format.last_clock;
  return true;
}

// How far the cursor is into its scanline. At the line's end, which has not been handled, that is
// all of it.
CULE_INLINE int clocks_into_line(const TiaState& tia) { return kClocksPerLine - tia.line_left; }

// What happens where visible scanlines end, `lines` of them one after the other: a mirrored
// playfield takes over its new setting, the players' first copies show again, the stars of Cosmic
// Ark move. Returns the bits of the objects that look different.
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

// Moves the beam to `clock`, past any number of lines: what draw_until does to the state. Returns
// the bits of the objects that look different there.
CULE_INLINE uint32_t move_beam(TiaState& tia, const TiaFormat& format, int32_t clock) {
  if (!has_way_to(tia, format, clock)) return 0;
  const int from = clocks_into_line(tia), to = from + (clock - tia.cursor);
  // A line's end is handled when the beam goes beyond it.
  const int lines = (to - 1) / kClocksPerLine, into_line = to - lines * kClocksPerLine;
  tia.cursor = clock;
  tia.line_left = kClocksPerLine - into_line;
  if (lines == 0 ? from < kCombEnd && into_line >= kCombEnd
                 : from < kCombEnd || lines > 1 || into_line >= kCombEnd)
    tia.hmove_blank = 0;
  return lines ? end_lines(tia, lines) : 0;
}

}  // namespace cule
