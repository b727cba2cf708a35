// What is to be known of the registers that programs write to, a row each.
#pragma once

#include "tia/state.h"

namespace cule {

// A register that is written to: known when this is compiled, so that what depends on it alone
// folds before anything is inlined, or not before this runs.
template <uint32_t kNumber>
struct KnownRegister {
  static constexpr uint32_t number = kNumber;
};
struct AnyRegister {
  uint32_t number;
};

// What a write that goes into the instruction buffer does on the CPU part's side: nothing beside,
// or that part minds it, too (Machine::write_tia).
enum class Recorded : uint8_t { kOnly, kAndMinded };
// What a write does to a state that the beam has left behind (eager.h): it only sets what no beam
// changes, in few instructions; or it may read or set what the beam changes on its way, too, or is
// rare.
enum class Applied : uint8_t { kAtHand, kWithBeam };

// What a write can do to the objects, a bit for each: show `shows` that were off, where one of the
// bits `by` of its value is set, or, without any, whatever the value is; change where `moves` are,
// and how wide; and change what `alters` look like, or will once something else is written.
struct ObjectFacts {
  uint8_t shows = 0, by = 0, moves = 0, alters = 0;
};

// How long a write takes to show: no time, 1 color clock or 8, or until the next pixel of the
// playfield that has not been fetched, which is 2 to 5 clocks. Source: ale-py, measured.
enum class Shown : uint8_t { kAtOnce, kAfterOne, kAfterEight, kAtNextPixel };

struct WriteFacts {
  tia_write::Register reg;
  Recorded recorded;
  Applied applied;
  Shown shown;
  ObjectFacts objects = {};
};

// A row for each register that is recorded. Those without one, such as those of sound, are not.
struct WriteTable {
  static constexpr uint32_t kRows = 36;
  WriteFacts rows[kRows];
};
constexpr WriteTable write_table() {
  using namespace tia_write;
  constexpr Recorded kOnly = Recorded::kOnly, kAndMinded = Recorded::kAndMinded;
  constexpr Applied kAtHand = Applied::kAtHand, kWithBeam = Applied::kWithBeam;
  constexpr Shown kAtOnce = Shown::kAtOnce, kAfterOne = Shown::kAfterOne;
  constexpr Shown kAfterEight = Shown::kAfterEight, kAtNextPixel = Shown::kAtNextPixel;
  constexpr uint8_t k0 = 1 << kPlayer0, k1 = 1 << kPlayer1, kM0 = 1 << kMissile0;
  constexpr uint8_t kM1 = 1 << kMissile1, kB = 1 << kBall, kP = 1 << kPlayfield;
  constexpr uint8_t kStruck = 1 << kNumTiaObjects;  // which objects move is another matter
  return {{
      {VBLANK, kAndMinded, kAtHand, kAfterOne, {kAllObjects}},
      {NUSIZ0, kOnly, kWithBeam, kAfterEight, {0, 0, k0 | kM0}},
      {NUSIZ1, kOnly, kWithBeam, kAfterEight, {0, 0, k1 | kM1}},
      {COLUP0, kOnly, kAtHand, kAtOnce},
      {COLUP1, kOnly, kAtHand, kAtOnce},
      {COLUPF, kOnly, kAtHand, kAtOnce},
      {COLUBK, kOnly, kAtHand, kAtOnce},
      {CTRLPF, kOnly, kWithBeam, kAtOnce, {0, 0, kB | kP}},
      {REFP0, kOnly, kAtHand, kAfterOne, {0, 0, 0, k0}},
      {REFP1, kOnly, kAtHand, kAfterOne, {0, 0, 0, k1}},
      {PF0, kOnly, kAtHand, kAtNextPixel, {kP, 0xF0}},
      {PF1, kOnly, kAtHand, kAtNextPixel, {kP, 0xFF}},
      {PF2, kOnly, kAtHand, kAtNextPixel, {kP, 0xFF}},
      {RESP0, kOnly, kWithBeam, kAtOnce, {0, 0, k0, kM0}},
      {RESP1, kOnly, kWithBeam, kAtOnce, {0, 0, k1, kM1}},
      {RESM0, kAndMinded, kWithBeam, kAfterEight, {0, 0, kM0}},
      {RESM1, kAndMinded, kWithBeam, kAfterEight, {0, 0, kM1}},
      {RESBL, kAndMinded, kWithBeam, kAtOnce, {0, 0, kB}},
      {GRP0, kOnly, kAtHand, kAfterOne, {k0, 0xFF, 0, k1}},
      {GRP1, kOnly, kAtHand, kAfterOne, {k1, 0xFF, 0, k0 | kB}},
      {ENAM0, kOnly, kAtHand, kAtOnce, {kM0, 2}},
      {ENAM1, kOnly, kAtHand, kAtOnce, {kM1, 2}},
      {ENABL, kOnly, kAtHand, kAtOnce, {kB, 2}},
      {HMP0, kOnly, kAtHand, kAtOnce, {0, 0, 0, k0 | kM0}},
      {HMP1, kOnly, kAtHand, kAtOnce, {0, 0, 0, k1 | kM1}},
      {HMM0, kAndMinded, kAtHand, kAtOnce, {0, 0, 0, kM0}},
      {HMM1, kOnly, kAtHand, kAtOnce, {0, 0, 0, kM1}},
      {HMBL, kOnly, kAtHand, kAtOnce, {0, 0, 0, kB}},
      {VDELP0, kOnly, kAtHand, kAtOnce, {k0, 1}},
      {VDELP1, kOnly, kAtHand, kAtOnce, {k1, 1}},
      {VDELBL, kOnly, kAtHand, kAtOnce, {kB, 1}},
      {RESMP0, kOnly, kWithBeam, kAtOnce, {kM0, 0, kM0}},
      {RESMP1, kOnly, kWithBeam, kAtOnce, {kM1, 0, kM1}},
      {HMOVE, kAndMinded, kWithBeam, kAtOnce, {0, 0, kStruck}},
      {HMCLR, kOnly, kAtHand, kAtOnce, {0, 0, 0, kMovableObjects}},
      {CXCLR, kAndMinded, kAtHand, kAtOnce},
  }};
}

// The registers for which `fact` is `value`, a bit for each.
template <class Fact>
constexpr uint64_t registers_where(Fact WriteFacts::*fact, Fact value) {
  constexpr WriteTable kTable = write_table();
  uint64_t registers = 0;
  for (const WriteFacts& facts : kTable.rows) {
    registers |= uint64_t{facts.*fact == value} << facts.reg;
  }
  return registers;
}
constexpr uint64_t kOnlyRecorded = registers_where(&WriteFacts::recorded, Recorded::kOnly);
constexpr uint64_t kAllRecorded = kOnlyRecorded |
                                  registers_where(&WriteFacts::recorded, Recorded::kAndMinded);
constexpr uint64_t kAtHand = registers_where(&WriteFacts::applied, Applied::kAtHand);

CULE_INLINE constexpr bool is_among(uint64_t registers, uint32_t reg) {
  const uint32_t low = static_cast<uint32_t>(registers),
                 high = static_cast<uint32_t>(registers >> 32);
  return (reg & 0x20 ? high : low) >> (reg & 0x1F) & 1;
}

// How many color clocks a write at `cycle` takes to show. RESPx can take longer (effect_of_write).
CULE_INLINE int write_delay(uint32_t reg, int32_t cycle) {
  constexpr uint64_t kAfterOne = registers_where(&WriteFacts::shown, Shown::kAfterOne);
  constexpr uint64_t kAfterEight = registers_where(&WriteFacts::shown, Shown::kAfterEight);
  constexpr uint64_t kAtNextPixel = registers_where(&WriteFacts::shown, Shown::kAtNextPixel);
  // A scanline has 19 times four cycles, so that the cycle within it need not be known.
  static_assert(kCyclesPerLine % 4 == 0);
  int delay = is_among(kAfterOne, reg);
  if (is_among(kAfterEight, reg)) delay = 8;
  if (is_among(kAtNextPixel, reg)) delay = 2 + ((cycle + 2) & 3);
  return delay;
}

// What each register says of the objects.
struct ObjectFactsOf {
  ObjectFacts of[0x40];
};
constexpr ObjectFactsOf objects_of_registers() {
  constexpr WriteTable kTable = write_table();
  ObjectFactsOf found{};
  for (const WriteFacts& facts : kTable.rows) found.of[facts.reg] = facts.objects;
  return found;
}

// The objects whose places a write changes, and all that it can change.
CULE_INLINE constexpr uint32_t objects_moved_by(const ObjectFacts& facts) {
  return facts.moves >> kNumTiaObjects ? kMovableObjects : facts.moves;
}
CULE_INLINE constexpr uint32_t objects_changed_by(const ObjectFacts& facts) {
  return facts.shows | objects_moved_by(facts) | facts.alters;
}

// The registers that can change an object, a bit for each.
struct RegistersOf {
  uint64_t of[kNumTiaObjects];
};
constexpr RegistersOf registers_of_each() {
  constexpr WriteTable kTable = write_table();
  RegistersOf found{};
  for (const WriteFacts& facts : kTable.rows) {
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      const uint64_t changes = objects_changed_by(facts.objects) >> object & 1;
      found.of[object] |= changes << facts.reg;
    }
  }
  return found;
}
CULE_INLINE uint64_t registers_of_objects(uint32_t objects) {
  constexpr RegistersOf kRegisters = registers_of_each();
  uint64_t registers = 0;
#pragma unroll
  for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
    registers |= objects >> object & 1 ? kRegisters.of[object] : 0;
  }
  return registers;
}

// Whether a write to `reg` goes into the buffer: all that can change a picture or a collision.
CULE_INLINE constexpr bool is_recorded(uint32_t reg) { return is_among(kAllRecorded, reg); }
// Whether being recorded is all that a write to `reg` does on the CPU part's side.
CULE_INLINE constexpr bool only_recorded(uint32_t reg) { return is_among(kOnlyRecorded, reg); }
CULE_INLINE constexpr bool is_at_hand(uint32_t reg) { return is_among(kAtHand, reg); }

}  // namespace cule
