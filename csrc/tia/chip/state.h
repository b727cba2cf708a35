// The part of the TIA's state that the picture depends on: registers, positions of the objects,
// collision latches, and how far the beam has come. Input ports and frame timing are in ports.h.
//
// Source: Stella Programmer's Guide. The stars of Cosmic Ark follow ale-py (motion.h).
#pragma once

#include "common/packed.h"
#include "tia/chip/registers.h"

namespace cule {

// How missile 0 looks after a write to HMM0 21 cycles after HMOVE (the stars of Cosmic Ark, see
// motion.h).
enum MissileShape : uint8_t { kMissileNormal, kMissileStretched, kMissileHidden };

struct TiaState {
  // Two points in time, in color clocks from the start of the frame's first scanline: where the
  // beam is, and where the picture's first scanline begins.
  int32_t cursor, origin;
  int32_t line_left;   // color clocks from the cursor to the end of its scanline; 0: the cursor is
                       // at that end, and the end has not been handled yet
  uint32_t playfield;  // 20 bits, the leftmost pixel in bit 0
  // Positions (0 to 159) and motion (0 to 15) of player 0, player 1, missile 0 and missile 1.
  // `motion` has the ball's too; the ball's position is in ball_position.
  Packed<uint32_t> positions;
  Packed<uint32_t, 4> motion;
  uint16_t collisions;
  uint8_t vblank;      // bit 1: the beam is off
  uint8_t color_loss;  // 1 in a PAL frame after one with an odd number of scanlines, else 0
  // Colors and CTRLPF.
  BytePair colup;
  uint8_t colupf, colubk;
  uint8_t ctrlpf;
  uint8_t reflect_now;  // whether this scanline's right half is mirrored; copied from CTRLPF bit 0
                        // at the end of a line, and by a write in a line's left half
  // Players: [0] and [1].
  BytePair nusiz;
  Packed<uint32_t> grp;  // [2] and [3]: the old graphics, which a player shows if VDELPx is set
  BytePair refp, vdelp;
  BytePair skip_first;  // the first copy is not shown on the rest of this scanline, after RESPx
  // Missiles and ball.
  BytePair enam, resmp;
  BytePair enabl;  // [1]: the old value, which counts if VDELBL is set
  uint8_t vdelbl;
  uint8_t missile0_shape, stars_on, stars_phase;
  uint8_t ball_position;
  uint8_t hmove_blank;  // the first 8 pixels of this scanline are black
  uint16_t unused;      // 0; pads the state to whole words
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

// What the picture format of a cartridge determines.
struct TiaFormat {
  int32_t first_clock;  // color clock at which the first visible scanline begins
  int32_t last_clock;   // one past the last visible color clock
  uint32_t hmove_blanks;
};

// The graphics that a player shows: the new graphics, or the old ones if VDELPx is set.
CULE_INLINE uint32_t shown_graphics(const TiaState& tia, uint32_t which) {
  return tia.grp[which + 2 * tia.vdelp[which]];
}
// The graphics that both players show if TiaState::grp is `grp`. Player 0 is in the lowest byte.
CULE_INLINE uint32_t shown_of_both(const TiaState& tia, uint32_t grp) {
  const uint32_t delayed = tia.vdelp.word * 0xFFu;
  return (grp >> 16 & delayed) | (grp & 0xFFFF & ~delayed);
}
// The bits of the players whose byte of `graphics` is not 0. Player 0 is in the lowest byte.
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

// One bit for each TiaObject that is switched on. Computes both objects of a pair together.
CULE_INLINE uint32_t objects_on(const TiaState& tia) {
  const uint32_t missiles = tia.enam.word & ~static_cast<uint32_t>(tia.resmp.word);
  return players_of(shown_of_both(tia, tia.grp.word)) | (missiles & 1) << kMissile0 |
         (missiles >> 8) << kMissile1 | static_cast<uint32_t>(ball_on(tia) != 0) << kBall |
         static_cast<uint32_t>(tia.playfield != 0) << kPlayfield;
}

}  // namespace cule
