// HMOVE: how far each object moves, and special cases.
//
// HMOVE sends up to 15 extra pulses to an object, one every 4 color clocks. The object moves right
// by 8 pixels minus the number of pulses that it got. If HMOVE comes late in the horizontal blank,
// some pulses come in the visible part of the scanline, where the object moves anyway. Those pulses
// are lost. If HMOVE comes near the end of a scanline, only pulses in the next blank count.
//
// Source: Andrew Towers, "Atari 2600 TIA Hardware Notes". The offsets below are fitted to ale-py,
// for every cycle and value. Special cases for some games follow ale-py, not the chip.
#pragma once

#include "tia/chip/state.h"

namespace cule {

// How many pixels to the right an object with `motion` (HMxx >> 4) moves if HMOVE comes at `cycle`
// of a scanline (0 to 75).
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

// The objects that HMOVE at `cycle` of a scanline may move. Each has a digit of four bits, of which
// the lowest is set. Most programs move few objects with an HMOVE.
CULE_INLINE uint32_t may_move(const TiaState& tia, int cycle) {
  constexpr uint32_t kAll = 0x11111;
  static_assert(kPlayfield == 5, "expected five movable objects, one for each digit of kAll");
  if (hmove_distance(cycle, 0) != 0) return kAll;
  uint32_t motion = tia.motion.word;
  motion |= motion >> 2;
  return (motion | motion >> 1) & kAll;
}
// The object of the lowest digit that is set.
CULE_INLINE uint32_t lowest_that_may_move(uint32_t digits) {
  return static_cast<uint32_t>(first_bit(digits)) / 4;
}

// Whether HMOVE at `cycle` of a scanline makes a black comb at the left: in the horizontal blank,
// or on the last cycle of the line before.
CULE_INLINE bool hmove_blanks_line(int cycle) { return cycle <= 20 || cycle == 75; }

CULE_INLINE int wrap_position(int position) {
  return position >= kLinePixels ? position - kLinePixels
         : position < 0          ? position + kLinePixels
                                 : position;
}

// Cosmic Ark's stars: if a program writes 6 to HMM0, which holds 7, 21 cycles after HMOVE, missile
// 0 keeps moving by itself. Its pattern repeats every four scanlines. On one of them the missile is
// at least two pixels wide, and on one it does not show. As in ale-py.
constexpr uint32_t kStarsHmoveDistance = 21;

// Whether missile 0 moves or looks like these stars.
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

// The position that a missile or the ball gets from a reset strobe at color clock `hpos` of a
// scanline. `since_hmove`, in cycles, matters only for the games named below.
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

// The same for a player.
CULE_INLINE int reset_player_position(int hpos) {
  const int position = hpos - kHblankClocks + 5;
  return hpos < kHblankClocks ? 3 : position < kLinePixels ? position : position - kLinePixels;
}

}  // namespace cule
