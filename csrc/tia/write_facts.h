// What is to be known of the registers that programs write to, a row each, beside their delays (write_delay in tia.h).
#pragma once

#include "tia/state.h"

namespace cule {

// A register that is written to: known when this is compiled, so that what depends on it alone folds
// before anything is inlined, or not before this runs.
template <uint32_t kNumber>
struct KnownRegister {
  static constexpr uint32_t number = kNumber;
};
struct AnyRegister {
  uint32_t number;
};

// What a write that goes into the instruction buffer does on the CPU part's side: nothing beside, or
// that part minds it, too (Machine::write_tia).
enum class Recorded : uint8_t { kOnly, kAndMinded };
// What a write does to a state that the beam has left behind (eager.h): it only sets what no beam changes, in few instructions; or it may
// read or set what the beam changes on its way, too, or is rare.
enum class Applied : uint8_t { kAtHand, kWithBeam };
// What a write can change of the objects: where they are and how wide, or only whether they are on, and which of their pixels.
enum class Changes : uint8_t { kPlaces, kPixels };

// What a write says of the objects, a bit for each: it can switch on `shows`, where one of the bits
// `by` of its value is set, or, without any, whatever the value is; with `draws`, those get the value as
// graphics, or any. It changes the places of `moves`.
struct ObjectFacts {
  uint8_t shows = 0, by = 0, moves = 0;
  bool draws = false;
};

struct WriteFacts {
  tia_write::Register reg;
  Recorded recorded;
  Applied applied;
  Changes changes;
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
  constexpr Changes kPlaces = Changes::kPlaces, kPixels = Changes::kPixels;
  constexpr uint8_t k0 = 1 << kPlayer0, k1 = 1 << kPlayer1, kM0 = 1 << kMissile0;
  constexpr uint8_t kM1 = 1 << kMissile1, kB = 1 << kBall, kP = 1 << kPlayfield;
  constexpr uint8_t kStruck = 1 << kNumTiaObjects;  // which objects move is another matter
  return {{
      {VBLANK, kAndMinded, kAtHand, kPixels, {kAllObjects}},
      {NUSIZ0, kOnly, kWithBeam, kPlaces, {0, 0, k0 | kM0}},
      {NUSIZ1, kOnly, kWithBeam, kPlaces, {0, 0, k1 | kM1}},
      {COLUP0, kOnly, kAtHand, kPixels},
      {COLUP1, kOnly, kAtHand, kPixels},
      {COLUPF, kOnly, kAtHand, kPixels},
      {COLUBK, kOnly, kAtHand, kPixels},
      {CTRLPF, kOnly, kWithBeam, kPlaces, {0, 0, kB | kP}},
      {REFP0, kOnly, kAtHand, kPixels, {k0, 0, 0, true}},
      {REFP1, kOnly, kAtHand, kPixels, {k1, 0, 0, true}},
      {PF0, kOnly, kAtHand, kPixels, {kP, 0xF0}},
      {PF1, kOnly, kAtHand, kPixels, {kP, 0xFF}},
      {PF2, kOnly, kAtHand, kPixels, {kP, 0xFF}},
      {RESP0, kOnly, kWithBeam, kPlaces, {0, 0, k0}},
      {RESP1, kOnly, kWithBeam, kPlaces, {0, 0, k1}},
      {RESM0, kAndMinded, kWithBeam, kPlaces, {0, 0, kM0}},
      {RESM1, kAndMinded, kWithBeam, kPlaces, {0, 0, kM1}},
      {RESBL, kAndMinded, kWithBeam, kPlaces, {0, 0, kB}},
      {GRP0, kOnly, kAtHand, kPixels, {k0, 0xFF, 0, true}},
      {GRP1, kOnly, kAtHand, kPixels, {k1, 0xFF, 0, true}},
      {ENAM0, kOnly, kAtHand, kPixels, {kM0, 2}},
      {ENAM1, kOnly, kAtHand, kPixels, {kM1, 2}},
      {ENABL, kOnly, kAtHand, kPixels, {kB, 2}},
      {HMP0, kOnly, kAtHand, kPixels},
      {HMP1, kOnly, kAtHand, kPixels},
      {HMM0, kAndMinded, kAtHand, kPixels},
      {HMM1, kOnly, kAtHand, kPixels},
      {HMBL, kOnly, kAtHand, kPixels},
      {VDELP0, kOnly, kAtHand, kPixels, {k0, 0, 0, true}},
      {VDELP1, kOnly, kAtHand, kPixels, {k1, 0, 0, true}},
      {VDELBL, kOnly, kAtHand, kPixels, {kB}},
      {RESMP0, kOnly, kWithBeam, kPlaces, {0, 0, kM0}},
      {RESMP1, kOnly, kWithBeam, kPlaces, {0, 0, kM1}},
      {HMOVE, kAndMinded, kWithBeam, kPlaces, {0, 0, kStruck}},
      {HMCLR, kOnly, kAtHand, kPixels},
      {CXCLR, kAndMinded, kAtHand, kPixels},
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
constexpr uint64_t kAllRecorded = kOnlyRecorded | registers_where(&WriteFacts::recorded, Recorded::kAndMinded);
constexpr uint64_t kAtHand = registers_where(&WriteFacts::applied, Applied::kAtHand);
constexpr uint64_t kChangePlaces = registers_where(&WriteFacts::changes, Changes::kPlaces);

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

CULE_INLINE constexpr bool is_among(uint64_t registers, uint32_t reg) {
  const uint32_t low = static_cast<uint32_t>(registers), high = static_cast<uint32_t>(registers >> 32);
  return (reg & 0x20 ? high : low) >> (reg & 0x1F) & 1;
}

// Whether a write to `reg` goes into the buffer: all that can change a picture or a collision.
CULE_INLINE constexpr bool is_recorded(uint32_t reg) { return is_among(kAllRecorded, reg); }
// Whether being recorded is all that a write to `reg` does on the CPU part's side.
CULE_INLINE constexpr bool only_recorded(uint32_t reg) { return is_among(kOnlyRecorded, reg); }
CULE_INLINE constexpr bool is_at_hand(uint32_t reg) { return is_among(kAtHand, reg); }
CULE_INLINE constexpr bool changes_places(uint32_t reg) { return is_among(kChangePlaces, reg); }

}  // namespace cule
