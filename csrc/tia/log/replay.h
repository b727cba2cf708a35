// Replays entries of the instruction buffer: for each, draws up to where it takes effect, and then
// changes the TIA's state.
//
// Source: write_facts.h has how long a write takes to show. Greying out follows ale-py.
#pragma once

#include "tia/chip/draw.h"
#include "tia/chip/tia.h"
#include "tia/chip/write_facts.h"
#include "tia/log/instruction_buffer.h"

namespace cule {

// Whether the picture must be drawn up to a write before the write is applied. The motion registers
// show only at the next HMOVE, except that HMM0 can start the stars at once. A frame is always
// drawn up to its last write (Machine::finish_frame).
template <class View>
CULE_INLINE bool draws_before(uint32_t reg, uint32_t value) {
  using namespace tia_write;
  constexpr uint64_t kMotion = registers_where(&WriteFacts::shown, Shown::kAtNextHmove);
  constexpr uint64_t kColors = registers_where(&WriteFacts::shown, Shown::kInColors);
  constexpr uint64_t kUnseen = kMotion | (View::kSeesColors ? 0 : kColors);
  return !is_among(kUnseen, reg) || (reg == HMM0 && (value & 0x0F));
}

// The first visible line that turns grey if the frame is cut off at `cycle`.
CULE_INLINE int grey_out_line(const TiaFormat& format, int32_t cycle) {
  const int line = cycle / kCyclesPerLine - format.first_clock / kClocksPerLine;
  return line > 0 ? line : 0;
}

// The effect of an entry of the instruction buffer: first the picture is drawn up to `clock`
// (kNoClock: it need not be drawn), then `reg` is set to `value`. For RESPx, `value` is the
// position that it gives the player.
struct Effect {
  int32_t clock, cycle;
  uint32_t reg, value;
  ResetPhase phase;
};

// An effect that only draws up to `clock`.
CULE_INLINE Effect drawing_until(int32_t clock) {
  return {clock, 0, kMarkTouch, 0, ResetPhase::kIdle};
}

// The effect on `tia` of RESPx, which is `reg`, at `cycle`. If the player is being drawn, drawing
// first continues for kPlayerFinishClocks.
CULE_INLINE Effect effect_of_reset(const TiaState& tia, uint32_t reg, int32_t cycle) {
  const int position = position_of_reset(cycle);
  const ResetPhase phase = reset_phase(tia, reg & 1, position);
  const int32_t finish = phase == ResetPhase::kDrawing ? kPlayerFinishClocks : 0;
  return {cycle * kClocksPerCycle + finish, cycle, reg, static_cast<uint32_t>(position), phase};
}

// The effect on `tia` of a write at `cycle`.
template <class View, class Reg>
CULE_INLINE Effect effect_of_write(const TiaState& tia, const Reg reg, uint32_t value,
                                   int32_t cycle) {
  using namespace tia_write;
  if (reg.number == RESP0 || reg.number == RESP1) {
    return effect_of_reset(tia, reg.number, cycle);
  }
  const bool draws = draws_before<View>(reg.number, value);
  const int32_t clock = cycle * kClocksPerCycle + write_delay(reg.number, cycle);
  return {draws ? clock : kNoClock, cycle, reg.number, value, ResetPhase::kIdle};
}

template <class View>
CULE_INLINE Effect effect_of(const TiaState& tia, uint32_t entry) {
  const uint32_t reg = entry_register(entry), value = entry_value(entry);
  const int32_t cycle = entry_cycle(entry);
  if (reg == kMarkTouch) return drawing_until(cycle * kClocksPerCycle);
  if (reg >= kMarkFrameBegin) return {kNoClock, cycle, reg, value, ResetPhase::kIdle};
  return effect_of_write<View>(tia, AnyRegister{reg}, value, cycle);
}

// Applies `effect`. The picture must have been drawn up to its clock.
template <class View>
CULE_INLINE void take_effect(TiaState& tia, const TiaFormat& format, const Effect& effect,
                             View& view) {
  switch (effect.reg) {
    case kMarkFrameBegin:
      begin_picture(tia, format, effect.value);
      view.begin_picture();
      break;
    case kMarkGreyOut: view.grey_out(grey_out_line(format, effect.cycle)); break;
    default:
      write_register(tia, format, AnyRegister{effect.reg}, effect.value, effect.cycle, effect.phase,
                     view);
  }
}

// Replays one entry of the instruction buffer. A loop over entries calls only this function. So the
// loop has the long code for drawing only once.
template <class View>
CULE_INLINE void replay_entry(TiaState& tia, const TiaFormat& format, uint32_t entry, View& view) {
  const Effect effect = effect_of<View>(tia, entry);
  draw_until(tia, format, effect.clock, view);
  take_effect(tia, format, effect, view);
}

// A view that shows nothing.
struct NoView {
  static constexpr bool kSeesColors = false;
  CULE_INLINE void begin_picture() {}
  CULE_INLINE void objects_changed(uint32_t) {}
  CULE_INLINE void grey_out(int) {}
};

// Whether a write is to HMM0 and carries the flag that it comes when stars can begin (motion.h).
CULE_INLINE bool notes_stars(uint32_t reg, uint32_t value) {
  return reg == tia_write::HMM0 && (value & 0x0F);
}

// Whether a write is applied directly (write_facts.h).
CULE_INLINE bool is_direct(uint32_t reg, uint32_t value) {
  return is_direct(reg) && !notes_stars(reg, value);
}

// Applies a write if it is a frequent one: one that only sets a field or a player's graphics.
// Returns whether it is, and sets `changes` to whether the write changes anything. The lanes of a
// warp diverge little here, even if they write to different registers.
CULE_INLINE bool apply_frequent(TiaState& tia, uint32_t reg, uint32_t value, bool& changes) {
  using namespace tia_write;
  if (is_direct(reg, value) && is_among(kWithField, reg)) {
    changes = set_field(tia, field_of(reg), value);
  } else if (reg == GRP0 || reg == GRP1) {
    changes = write_graphics(tia, reg == GRP1, value);
  } else {
    return false;
  }
  return true;
}

}  // namespace cule
