// The TIA's state as the CPU part of a frame keeps it: each write changes it at once, and the beam
// stays behind.
//
// Most writes only set what the beam neither reads nor changes, so that it may come later, past
// many of them at once. Those that have to do with where it is, or with what it changes on its way
// (beam.h), bring it to where they take effect first. What the beam draws on its way is of no
// interest here: the state is what replaying the same entries one by one leaves (replay_entry),
// once the beam is where it is there, except for the collision latches.
#pragma once

#include "tia/sightings.h"
#include "tia/tia.h"

namespace cule {

// Sees nothing.
struct NoView {
  static constexpr bool kSeesColors = false;
  CULE_INLINE void begin_picture() {}
  CULE_INLINE void objects_changed(uint32_t) {}
  CULE_INLINE void grey_out(int) {}
};

// Brings the beam to where the last writes of a frame take effect, which they would have been drawn
// up to. Before those of the same cycle, as a jump to a subroutine can push, all have.
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

// Does what a mark does.
CULE_COLD void apply_mark(TiaState& tia, const TiaFormat& format, uint32_t entry) {
  NoView view;
  const Effect effect = effect_of<NoView>(tia, entry);
  move_beam(tia, format, effect.clock);
  take_effect(tia, format, effect, view);
}

// Whether a write to HMM0 says that it comes as stars begin (motion.h).
CULE_INLINE bool notes_stars(uint32_t reg, uint32_t value) {
  return reg == tia_write::HMM0 && (value & 0x0F);
}

// Whether a write needs no beam, and little code.
CULE_INLINE bool is_direct(uint32_t reg, uint32_t value) {
  return is_direct(reg) && !notes_stars(reg, value);
}

// Does a write that changes something, the beam having been brought to where it takes effect.
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

// Does a write that is recorded. Returns whether it changes anything. Where that moves an object,
// the place is noted in `left`.
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

// Does a write, if it is one of the frequent ones, and says in `changes` whether it changes
// anything. These only set a field or a player's graphics, and do not part the lanes of a warp.
// Returns whether it is one.
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

// Does what a write with `effect` does, whose register only the running program knows, the beam
// having been brought to where it takes effect, unless the write is at hand. `view` is told what
// looks different, unless the write is a frequent one.
template <class View>
CULE_INLINE void apply_effect(TiaState& tia, const TiaFormat& format, const Effect& effect,
                              View& view) {
  bool changes;
  if (apply_frequent(tia, effect.reg, effect.value, changes)) return;
  write_register(tia, format, AnyRegister{effect.reg}, effect.value, effect.cycle, effect.phase,
                 view);
}

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
#define CULE_CASES_4(reg) CULE_CASE(reg) CULE_CASE(reg + 1) CULE_CASE(reg + 2) CULE_CASE(reg + 3)
#define CULE_CASES_16(reg) \
  CULE_CASES_4(reg) CULE_CASES_4(reg + 4) CULE_CASES_4(reg + 8) CULE_CASES_4(reg + 12)
  switch (reg.number) {
    CULE_CASES_16(0x00) CULE_CASES_16(0x10) CULE_CASES_16(0x20)
    default: return false;
  }
#undef CULE_CASE
#undef CULE_CASES_4
#undef CULE_CASES_16
}

}  // namespace cule
