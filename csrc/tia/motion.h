// HMOVE: how far each object moves, and the special cases around it.
//
// HMOVE makes up to 15 extra pulses reach an object, one every 4 color clocks, and takes 8 back: an
// object moves right by 8 less the pulses that it got (Andrew Towers, "Atari 2600 TIA Hardware
// Notes"). Struck late in the horizontal blank, pulses fall into the visible part, where an object
// moves anyway, and are lost; struck near the end of a scanline, only those that fall into the next
// blank count. The offsets below are fitted to ale-py, for every cycle and value.
#pragma once

#include "tia/state.h"

namespace cule {

// By how many pixels to the right HMOVE at `cycle` of a scanline (0 to 75) moves an object with
// `motion` (HMxx >> 4).
CULE_INLINE int hmove_distance(int cycle, int motion) {
  const int pulses = motion ^ 8;
  if (cycle == 75) return 8 - pulses;
  if (cycle <= 20) {
    const int possible = (kHblankClocks + 2 - kClocksPerCycle * cycle) >> 2;
    return 8 - (pulses < possible ? pulses : possible);
  }
  if (cycle < 54) return 0;
  const int lost = (222 - kClocksPerCycle * cycle) >> 2;
  return pulses > lost ? lost - pulses : 0;
}

// Whether HMOVE at `cycle` of a scanline moves any object.
CULE_INLINE bool moves_any(const TiaState& tia, int cycle) {
  return tia.motion.word != 0 || hmove_distance(cycle, 0) != 0;
}

// The objects that HMOVE at `cycle` of a scanline may move, the lowest bit of four for each. Most
// programs move few with it.
CULE_INLINE uint32_t may_move(const TiaState& tia, int cycle) {
  constexpr uint32_t kAll = 0x11111;
  static_assert(kPlayfield == 5, "a digit for each movable object");
  if (hmove_distance(cycle, 0) != 0) return kAll;
  uint32_t motion = tia.motion.word;
  motion |= motion >> 2;
  return (motion | motion >> 1) & kAll;
}
// The object of the lowest of these.
CULE_INLINE uint32_t lowest_that_may_move(uint32_t digits) {
  return static_cast<uint32_t>(count_bits((digits & (0u - digits)) - 1)) / 4;
}

// The black comb at the left appears where HMOVE came in the blank, or on the line's last cycle.
CULE_INLINE bool hmove_blanks_line(int cycle) { return cycle <= 20 || cycle == 75; }

CULE_INLINE int wrap_position(int position) {
  return position >= kLinePixels ? position - kLinePixels
         : position < 0          ? position + kLinePixels
                                 : position;
}

// Cosmic Ark's stars: writing HMM0 = 6 over a 7, 21 cycles after HMOVE, leaves missile 0 moving by
// itself, by a pattern that repeats every four scanlines, on one of which it is at least two pixels
// wide and on one of which it does not show.
constexpr uint32_t kStarsHmoveDistance = 21;

// Whether missile 0 moves so, or looks as if.
CULE_INLINE bool has_stars(const TiaState& tia) {
  return tia.stars_on || tia.missile0_shape != kMissileNormal;
}

CULE_INLINE void move_stars(TiaState& tia) {
  constexpr uint32_t kSteps = 17u << 24 | 0u << 16 | 33u << 8 | 18u;
  tia.stars_phase = (tia.stars_phase + 1) & 3;
  const int distance = static_cast<int>(kSteps >> 8 * tia.stars_phase & 0xFF);
  set_position(tia, kMissile0, wrap_position(position_of(tia, kMissile0) - distance));
  tia.missile0_shape = tia.stars_phase == 1   ? kMissileStretched
                       : tia.stars_phase == 2 ? kMissileHidden
                                              : kMissileNormal;
}

// Where a missile or the ball goes when it is reset at color clock `hpos` of a scanline.
// `since_hmove`, in cycles, matters to the games named.
CULE_INLINE int reset_position(TiaObject object, int hpos, uint32_t since_hmove) {
  if (object == kMissile0 && since_hmove == 20 && hpos == 69) return 8;                   // Dolphin
  if (object == kMissile1 && since_hmove == 3 && hpos == 18) return 3;  // Pitfall II
  if (object == kBall) {
    if (since_hmove == 18 && (hpos == 60 || hpos == 69)) return 10;  // Escape from the Mindmaster
    if (since_hmove == 3 && hpos == 18) return 3;  // Decathlon
    if (since_hmove == 7 && hpos == 30) return 6;  // Robot Tank
    if (since_hmove == 6 && hpos == 27) return 5;  // Hole Hunter
  }
  return hpos < kHblankClocks ? 2 : (hpos - kHblankClocks + 4) % kLinePixels;
}

CULE_INLINE int reset_player_position(int hpos) {
  return hpos < kHblankClocks ? 3 : (hpos - kHblankClocks + 5) % kLinePixels;
}

}  // namespace cule
