// The TIA's state as the CPU part of a frame keeps it: each write changes the state at once, and
// the beam lags behind.
//
// Most writes set only fields that the movement of the beam neither reads nor changes. The beam can
// pass many such writes later, in one step. Some writes depend on where the beam is, or on what
// its movement changes (beam.h). These writes first bring the beam to where they take effect.
// Nothing is drawn here.
//
// A chip draws as it goes. Still the state is the same as after a replay of the same entries one by
// one (replay_entry), once the beam is at the same place. Only the collision latches differ.
#pragma once

#include "tia/collisions/bounds.h"
#include "tia/log/replay.h"

namespace cule {

// Brings the beam to where the last writes of a frame take effect, as drawing would have. Several
// writes can share the last cycle, such as the two bytes that JSR pushes. All writes before that
// cycle have taken effect by then.
CULE_COLD void finish_writes(TiaState& tia, const TiaFormat& format, const uint32_t* entries,
                             uint32_t count) {
  const int32_t cycle = count ? entry_cycle(entries[count - 1]) : 0;
  for (uint32_t i = count; i > 0 && entry_register(entries[i - 1]) < kMarkFrameBegin &&
                           entry_cycle(entries[i - 1]) == cycle;
       --i) {
    const uint32_t reg = entry_register(entries[i - 1]);
    if (draws_before<NoView>(reg, entry_value(entries[i - 1]))) {
      move_beam(tia, format, cycle * kClocksPerCycle + write_delay(reg, cycle));
    }
  }
}

// Applies a mark.
CULE_COLD void apply_mark(TiaState& tia, const TiaFormat& format, uint32_t entry) {
  NoView view;
  const Effect effect = effect_of<NoView>(tia, entry);
  move_beam(tia, format, effect.clock);
  take_effect(tia, format, effect, view);
}

// Brings the beam to where a write takes effect, and applies the write, which must change
// something.
template <uint32_t kReg>
CULE_COLD void apply_with_beam(TiaState& tia, const TiaFormat& format, uint32_t value,
                               int32_t cycle, PlacesLeft& left) {
  constexpr KnownRegister<kReg> reg;
  left.note(tia, reg, cycle % kCyclesPerLine);
  NoView view;
  const Effect effect = effect_of_write<NoView>(tia, reg, value, cycle);
  move_beam(tia, format, effect.clock);
  write_register(tia, format, reg, value, cycle, effect.phase, view);
}

// Whether a write would change anything.
CULE_COLD bool would_change(const TiaState& tia, const AnyRegister reg, uint32_t value) {
  return !changes_nothing(tia, reg, value);
}

// Applies a write that is recorded. Returns whether it changes anything. If it moves an object,
// `left` gets the place that the object leaves.
template <uint32_t kReg>
CULE_INLINE bool apply_write(TiaState& tia, const TiaFormat& format, const KnownRegister<kReg> reg,
                             uint32_t value, int32_t cycle, PlacesLeft& left) {
  NoView view;
  if (is_direct(kReg, value)) {
    return write_register(tia, format, reg, value, cycle, ResetPhase::kIdle, view);
  }
  if (changes_nothing(tia, reg, value)) return false;
  apply_with_beam<kReg>(tia, format, value, cycle, left);
  return true;
}

// The same as the first apply_write, for a register that is known only at run time.
CULE_COLD bool apply_write(TiaState& tia, const TiaFormat& format, const AnyRegister reg,
                           uint32_t value, int32_t cycle, PlacesLeft& left) {
  using namespace tia_write;
  bool changes;
  if (apply_frequent(tia, reg.number, value, changes)) return changes;
  constexpr uint64_t kStars = registers_where(&WriteFacts::cpu_effect, CpuEffect::kStars);
  constexpr uint64_t kOthers = kAllRecorded & ~kGraphicsRegisters & (~kWithField | kStars);
#define CULE_CASE(reg) \
  case reg: \
    return is_among(kOthers, reg) && \
           apply_write(tia, format, KnownRegister<reg>{}, value, cycle, left);
  switch (reg.number) {
    CULE_EACH_TIA_WRITE(CULE_CASE)
    default: return false;
  }
#undef CULE_CASE
}

}  // namespace cule
