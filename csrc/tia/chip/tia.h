// What a write to the TIA does to its state, register by register. When it does so is in
// write_facts.h; draw.h shows the state in pixels.
//
// Source: Stella Programmer's Guide. PAL color loss and special cases of RESPx follow ale-py. As
// there, RSYNC is not emulated.
#pragma once

#include "tia/chip/beam.h"
#include "tia/chip/objects.h"
#include "tia/chip/write_facts.h"

namespace cule {

// The position that RESPx at `cycle` gives a player.
CULE_INLINE int position_of_reset(int32_t cycle) {
  const uint32_t in_line = static_cast<uint32_t>(cycle) % kCyclesPerLine;
  return reset_player_position(static_cast<int>(in_line) * kClocksPerCycle);
}

// If a player is reset while one of its copies is being drawn, it is drawn for this long before it
// moves.
constexpr int kPlayerFinishClocks = 11;
constexpr int kLongestDelay = kPlayerFinishClocks;

CULE_INLINE void tia_reset(TiaState& tia) {
  tia = TiaState{};
  tia.line_left = kClocksPerLine;
}

// Starts a frame's picture. On a PAL console, colors lose their hue after a frame with an odd
// number of scanlines.
CULE_INLINE void begin_picture(TiaState& tia, const TiaFormat& format, uint32_t color_loss) {
  tia.cursor = tia.origin = format.first_clock;
  tia.line_left = kClocksPerLine;
  tia.color_loss = static_cast<uint8_t>(color_loss);
  tia.colup[0] = (tia.colup[0] & 0xFE) | color_loss;
  tia.colup[1] = (tia.colup[1] & 0xFE) | color_loss;
  tia.colupf = static_cast<uint8_t>((tia.colupf & 0xFE) | color_loss);
  tia.colubk = static_cast<uint8_t>((tia.colubk & 0xFE) | color_loss);
}

CULE_INLINE ResetPhase reset_phase(const TiaState& tia, uint32_t which, int position) {
  return player_reset_phase(tia.nusiz[which], position_of(tia, kPlayer0 + which), position);
}

// Applies RESPx, which found the player in `phase` and moves it to `position`.
CULE_INLINE void reset_player(TiaState& tia, uint32_t which, int position, ResetPhase phase) {
  set_position(tia, kPlayer0 + which, position);
  tia.skip_first[which] = phase != ResetPhase::kDelay;
}

// Applies NUSIZx.
CULE_INLINE void set_size(TiaState& tia, uint32_t which, uint32_t value) {
  tia.nusiz[which] = value;
  tia.skip_first[which] = 0;
  if (which == 0) tia.missile0_shape = kMissileNormal;
}

// Locks missile `which` to the middle of its player, or releases it there.
CULE_INLINE void lock_missile(TiaState& tia, uint32_t which, uint32_t value) {
  if (tia.resmp[which] && !(value & 2)) {
    const int middle = static_cast<int>(player_width(tia.nusiz[which] & 7) / 2);
    set_position(tia, kMissile0 + which,
                 (position_of(tia, kPlayer0 + which) + middle) % kLinePixels);
    if (which == 0) tia.missile0_shape = kMissileNormal;
  }
  tia.resmp[which] = value >> 1 & 1;
}

// Whether HMOVE at `cycle_in_line` changes no object.
CULE_INLINE bool moves_nothing(const TiaState& tia, int cycle_in_line) {
  return !moves_any(tia, cycle_in_line) && tia.skip_first.word == 0 && !has_stars(tia);
}

template <class View>
CULE_INLINE void move_objects(TiaState& tia, const TiaFormat& format, int cycle_in_line,
                              View& view) {
  if (format.hmove_blanks && hmove_blanks_line(cycle_in_line)) tia.hmove_blank = 1;
  uint32_t changed = static_cast<uint32_t>(tia.skip_first[0] != 0) << kPlayer0 |
                     static_cast<uint32_t>(tia.skip_first[1] != 0) << kPlayer1 |
                     static_cast<uint32_t>(tia.missile0_shape != kMissileNormal) << kMissile0;
#pragma unroll 1
  for (uint32_t left = may_move(tia, cycle_in_line); left; left &= left - 1) {
    const uint32_t object = lowest_that_may_move(left);
    const int distance = hmove_distance(cycle_in_line, static_cast<int>(tia.motion[object]));
    set_position(tia, object, wrap_position(position_of(tia, object) + distance));
    changed |= static_cast<uint32_t>(distance != 0) << object;
  }
  tia.skip_first.word = 0;
  tia.missile0_shape = kMissileNormal;
  tia.stars_on = 0;
  view.objects_changed(changed);
}

// Sets a field to `value`. Returns whether the field changes.
template <class Field>
CULE_INLINE bool put(Field&& field, uint32_t value) {
  const uint32_t before = field;
  field = static_cast<uint8_t>(value);
  return value != before;
}

// TiaState::grp after a write to a player's graphics, which also copies the other player's graphics
// to that player's old graphics. A write for player 1 does the same for the ball (write_graphics).
CULE_INLINE uint32_t graphics_after(uint32_t grp, uint32_t which, uint32_t byte) {
  return pick_bytes(grp, byte, which == 0 ? 0x1214 : 0x3040);
}
// The objects that look different after such a write.
CULE_INLINE uint32_t changed_by_graphics(const TiaState& tia, uint32_t which, uint32_t byte) {
  const uint32_t grp = tia.grp.word;
  const uint32_t differ =
      shown_of_both(tia, grp) ^ shown_of_both(tia, graphics_after(grp, which, byte));
  const bool ball = which && tia.vdelbl && tia.enabl[0] != tia.enabl[1];
  return players_of(differ) | static_cast<uint32_t>(ball) << kBall;
}
// Applies such a write. Returns whether it changes anything.
CULE_INLINE bool write_graphics(TiaState& tia, uint32_t which, uint32_t byte) {
  const uint32_t grp = tia.grp.word, enabl = tia.enabl.word;
  tia.grp.word = graphics_after(grp, which, byte);
  if (which) tia.enabl.word = static_cast<uint16_t>(pick_bytes(enabl, 0, 0x4400));
  return tia.grp.word != grp || tia.enabl.word != enabl;
}

// Sets a register of one bit to bit 0 of `value`. `object` depends on it. Returns whether it
// changes.
template <class Field, class View>
CULE_INLINE bool set_bit(Field&& field, uint32_t value, uint32_t object, View& view) {
  const bool changed = put(field, value & 1);
  if (changed) view.objects_changed(1u << object);
  return changed;
}

// Applies a write of `value` to `reg`. The picture must have been drawn up to this write. `phase`
// matters for RESPx only. Returns whether anything may have changed. For direct writes
// (write_facts.h) this is exact.
template <class Reg, class View>
CULE_INLINE bool write_register(TiaState& tia, const TiaFormat& format, const Reg reg,
                                uint32_t value, int32_t cycle, ResetPhase phase, View& view) {
  using namespace tia_write;
  const uint8_t byte = static_cast<uint8_t>(value);
  const uint32_t which = reg.number & 1;
  const int32_t clock = cycle * kClocksPerCycle;
  switch (reg.number) {
    case VBLANK: return put(tia.vblank, byte);
    case NUSIZ0: case NUSIZ1:  // 4, 5
      set_size(tia, which, value);
      view.objects_changed((1u << kPlayer0 | 1u << kMissile0) << which);
      break;
    case COLUP0: case COLUP1: return put(tia.colup[which], (byte & 0xFE) | tia.color_loss);
    case COLUPF: return put(tia.colupf, (byte & 0xFE) | tia.color_loss);
    case COLUBK: return put(tia.colubk, (byte & 0xFE) | tia.color_loss);
    case CTRLPF:
      tia.ctrlpf = byte;
      // Mirroring changes at once only while the beam is in the left half.
      if (clock % kClocksPerLine < kHblankClocks + kLinePixels / 2 - 1) tia.reflect_now = byte & 1;
      view.objects_changed(1u << kBall | 1u << kPlayfield);
      break;
    case REFP0: case REFP1:  // $0B, $0C
      return set_bit(tia.refp[which ^ 1], value >> 3, kPlayer0 + (which ^ 1), view);
    case PF0: case PF1: case PF2: {
      const uint32_t before = tia.playfield;
      tia.playfield = set_playfield(before, reg.number, value);
      if (tia.playfield == before) return false;
      view.objects_changed(1u << kPlayfield);
      return true;
    }
    case RESP0: case RESP1:
      reset_player(tia, which, position_of_reset(cycle), phase);
      view.objects_changed(1u << kPlayer0 << which);
      break;
    case RESM0: case RESM1: {
      const TiaObject missile = which ? kMissile1 : kMissile0;
      set_position(tia, missile, reset_position(missile, clock % kClocksPerLine, value));
      if (which == 0) tia.missile0_shape = kMissileNormal;
      view.objects_changed(1u << missile);
      break;
    }
    case RESBL:
      set_position(tia, kBall, reset_position(kBall, clock % kClocksPerLine, value));
      view.objects_changed(1u << kBall);
      break;
    case GRP0: case GRP1:  // $1B, $1C
      view.objects_changed(changed_by_graphics(tia, which ^ 1, byte));
      return write_graphics(tia, which ^ 1, byte);
    case ENAM0: case ENAM1:  // $1D, $1E
      return set_bit(tia.enam[which ^ 1], value >> 1, kMissile0 + (which ^ 1), view);
    case ENABL: return set_bit(tia.enabl[0], value >> 1, kBall, view);
    case HMM0:
      if ((value & 0x0F) && tia.motion[kMissile0] == 7 && value >> 4 == 6) {
        tia.stars_on = 1;
        tia.stars_phase = 0;
      }
      return put(tia.motion[kMissile0], byte >> 4);
    case HMP0: case HMP1: case HMM1: case HMBL:
      return put(tia.motion[reg.number - HMP0], byte >> 4);
    case VDELP0: case VDELP1:  // $25, $26
      return set_bit(tia.vdelp[which ^ 1], value, kPlayer0 + (which ^ 1), view);
    case VDELBL: return set_bit(tia.vdelbl, value, kBall, view);
    case RESMP0: case RESMP1:
      lock_missile(tia, which, value);
      view.objects_changed(1u << kMissile0 << which);
      break;
    case HMOVE: move_objects(tia, format, cycle % kCyclesPerLine, view); break;
    case HMCLR: {
      const bool changed = tia.motion.word != 0;
      tia.motion.word = 0;
      return changed;
    }
    case CXCLR:
      tia.collisions = 0;
      view.objects_changed(0);  // objects that still overlap set the latches again
      break;
    default: break;
  }
  return true;
}

// Whether a write changes nothing: the register already holds the value, and the write has no other
// effect. Programs write most registers on every line. About half of these writes change nothing,
// and need not be recorded. If the beam lags behind (deferred_beam.h), this is true only of writes
// that change nothing wherever the beam is.
template <class Reg>
CULE_INLINE bool changes_nothing(const TiaState& tia, const Reg reg, uint32_t value) {
  using namespace tia_write;
  const uint32_t which = reg.number & 1, other = which ^ 1;
  const uint32_t color = (value & 0xFE) | tia.color_loss;
  switch (reg.number) {
    case VBLANK: return tia.vblank == value;
    case NUSIZ0: case NUSIZ1:
      return tia.nusiz[which] == value && !tia.skip_first[which] && (which || !has_stars(tia));
    case COLUP0: case COLUP1: return tia.colup[which] == color;
    case COLUPF: return tia.colupf == color;
    case COLUBK: return tia.colubk == color;
    case CTRLPF: return tia.ctrlpf == value && tia.reflect_now == (value & 1);
    case REFP0: case REFP1: return tia.refp[other] == (value >> 3 & 1);
    case PF0: case PF1: case PF2:
      return tia.playfield == set_playfield(tia.playfield, reg.number, value);
    case GRP0: case GRP1: {  // $1B, $1C
      return tia.grp[other] == value && tia.grp[which + 2] == tia.grp[which] &&
             (other == 0 || tia.enabl[1] == tia.enabl[0]);
    }
    case ENAM0: case ENAM1: return tia.enam[other] == (value >> 1 & 1);
    case ENABL: return tia.enabl[0] == (value >> 1 & 1);
    case VDELP0: case VDELP1: return tia.vdelp[other] == (value & 1);
    case VDELBL: return tia.vdelbl == (value & 1);
    case HMP0: case HMP1: case HMM0: case HMM1: case HMBL:
      return tia.motion[reg.number - HMP0] == value >> 4;
    case RESMP0: case RESMP1: return tia.resmp[which] == (value >> 1 & 1);  // $28, $29
    case HMCLR: return tia.motion.word == 0;
    default: return false;
  }
}

}  // namespace cule
