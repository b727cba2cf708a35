// The TIA's state as the TIA part keeps it: the registers that shape the picture, where the objects
// are, the collision latches, and how far the picture has been drawn.
#pragma once

#include "common/packed.h"
#include "tia/registers.h"

namespace cule {

// Missile 0's width while HMM0 was changed 21 cycles after HMOVE (the stars of Cosmic Ark, see
// motion.h).
enum MissileShape : uint8_t { kMissileNormal, kMissileStretched, kMissileHidden };

struct TiaState {
  // Color clocks from the start of the frame's first scanline: up to where it is drawn, and where
  // the picture's first scanline is.
  int32_t cursor, origin;
  int32_t line_left;   // from the cursor to its scanline's end; 0: that is reached, not handled
  uint32_t playfield;  // 20 bits, the leftmost pixel in bit 0
  // Positions, 0 to 159, and motion, 0 to 15, of player 0, player 1, missile 0, missile 1 and the
  // ball, whose position is apart.
  Packed<uint32_t> positions;
  Packed<uint32_t, 4> motion;
  uint16_t collisions;
  uint8_t vblank;      // bit 1: the beam is off
  uint8_t color_loss;  // 1 in a PAL frame after one with an odd number of scanlines, else 0
  // Colors and CTRLPF.
  BytePair colup;
  uint8_t colupf, colubk;
  uint8_t ctrlpf;
  uint8_t reflect_now;  // whether this scanline's right half is mirrored: CTRLPF bit 0, taken over
                        // at a line's end
  // Players: [0] and [1].
  BytePair nusiz;
  Packed<uint32_t> grp;  // [2] and [3]: the old ones, which VDELPx shows instead
  BytePair refp, vdelp;
  BytePair skip_first;  // the first copy was missed, as RESPx came too late in this scanline
  // Missiles and ball.
  BytePair enam, resmp;
  BytePair enabl;  // [1]: the old one, which VDELBL shows instead
  uint8_t vdelbl;
  uint8_t missile0_shape, stars_on, stars_phase;
  uint8_t ball_position;
  uint8_t hmove_blank;  // the first 8 pixels of this scanline are black
  uint16_t unused;      // makes whole words; 0
};
static_assert(sizeof(TiaState) % 4 == 0, "states are copied by words");

enum TiaObject : uint32_t {
  kPlayer0, kPlayer1, kMissile0, kMissile1, kBall, kPlayfield, kNumTiaObjects
};
constexpr uint32_t kAllObjects = (1u << kNumTiaObjects) - 1;
constexpr uint32_t kMovableObjects = kAllObjects & ~(1u << kPlayfield);

CULE_INLINE int position_of(const TiaState& tia, uint32_t object) {
  return static_cast<int>(object == kBall ? tia.ball_position : tia.positions[object]);
}
CULE_INLINE void set_position(TiaState& tia, uint32_t object, int position) {
  if (object == kBall) tia.ball_position = static_cast<uint8_t>(position);
  else tia.positions[object] = static_cast<uint32_t>(position);
}

// What a cartridge's picture format fixes.
struct TiaFormat {
  int32_t first_clock;  // of the first visible scanline
  int32_t last_clock;   // one past the last visible clock
  uint32_t hmove_blanks;
};

// The graphics that a player shows: the new ones, or with VDELPx the old.
CULE_INLINE uint32_t shown_graphics(const TiaState& tia, uint32_t which) {
  return tia.grp[which + 2 * tia.vdelp[which]];
}
// The same of both players, player 0 lowest, where their graphics are `grp`.
CULE_INLINE uint32_t shown_of_both(const TiaState& tia, uint32_t grp) {
  const uint32_t delayed = tia.vdelp.word * 0xFFu;
  return (grp >> 16 & delayed) | (grp & 0xFFFF & ~delayed);
}
// One bit for each player of which `graphics`, player 0's lowest, is not 0.
CULE_INLINE uint32_t players_of(uint32_t graphics) {
  return static_cast<uint32_t>((graphics & 0x00FF) != 0) << kPlayer0 |
         static_cast<uint32_t>((graphics & 0xFF00) != 0) << kPlayer1;
}
CULE_INLINE bool player_on(const TiaState& tia, uint32_t which) {
  return shown_graphics(tia, which) != 0;
}
CULE_INLINE bool missile_on(const TiaState& tia, uint32_t which) {
  return tia.enam[which] && !tia.resmp[which];
}
CULE_INLINE bool ball_on(const TiaState& tia) { return tia.enabl[tia.vdelbl]; }

// One bit for each TiaObject that is switched on. The pairs are worked out side by side.
CULE_INLINE uint32_t objects_on(const TiaState& tia) {
  const uint32_t missiles = tia.enam.word & ~static_cast<uint32_t>(tia.resmp.word);
  return players_of(shown_of_both(tia, tia.grp.word)) | (missiles & 1) << kMissile0 |
         (missiles >> 8) << kMissile1 | static_cast<uint32_t>(ball_on(tia) != 0) << kBall |
         static_cast<uint32_t>(tia.playfield != 0) << kPlayfield;
}

}  // namespace cule
