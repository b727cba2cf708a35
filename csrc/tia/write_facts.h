// What is to be known of the registers that programs write to, a row each, beside their delays (write_delay in tia.h).
#pragma once

#include "tia/registers.h"

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

struct WriteFacts {
  tia_write::Register reg;
  Recorded recorded;
  Applied applied;
  Changes changes;
};

// The registers for which `fact` is `value`, a bit for each. Those without a row, such as those of
// sound, are not recorded.
template <class Fact>
constexpr uint64_t registers_where(Fact WriteFacts::*fact, Fact value) {
  using namespace tia_write;
  constexpr Recorded kOnly = Recorded::kOnly, kAndMinded = Recorded::kAndMinded;
  constexpr Applied kAtHand = Applied::kAtHand, kWithBeam = Applied::kWithBeam;
  constexpr Changes kPlaces = Changes::kPlaces, kPixels = Changes::kPixels;
  constexpr WriteFacts kFacts[] = {
      {VBLANK, kAndMinded, kAtHand, kPixels},
      {NUSIZ0, kOnly, kWithBeam, kPlaces},       {NUSIZ1, kOnly, kWithBeam, kPlaces},
      {COLUP0, kOnly, kAtHand, kPixels},         {COLUP1, kOnly, kAtHand, kPixels},
      {COLUPF, kOnly, kAtHand, kPixels},         {COLUBK, kOnly, kAtHand, kPixels},
      {CTRLPF, kOnly, kWithBeam, kPlaces},
      {REFP0, kOnly, kAtHand, kPixels},          {REFP1, kOnly, kAtHand, kPixels},
      {PF0, kOnly, kAtHand, kPixels},            {PF1, kOnly, kAtHand, kPixels},
      {PF2, kOnly, kAtHand, kPixels},
      {RESP0, kOnly, kWithBeam, kPlaces},        {RESP1, kOnly, kWithBeam, kPlaces},
      {RESM0, kAndMinded, kWithBeam, kPlaces},   {RESM1, kAndMinded, kWithBeam, kPlaces},
      {RESBL, kAndMinded, kWithBeam, kPlaces},
      {GRP0, kOnly, kAtHand, kPixels},           {GRP1, kOnly, kAtHand, kPixels},
      {ENAM0, kOnly, kAtHand, kPixels},          {ENAM1, kOnly, kAtHand, kPixels},
      {ENABL, kOnly, kAtHand, kPixels},
      {HMP0, kOnly, kAtHand, kPixels},           {HMP1, kOnly, kAtHand, kPixels},
      {HMM0, kAndMinded, kAtHand, kPixels},      {HMM1, kOnly, kAtHand, kPixels},
      {HMBL, kOnly, kAtHand, kPixels},
      {VDELP0, kOnly, kAtHand, kPixels},         {VDELP1, kOnly, kAtHand, kPixels},
      {VDELBL, kOnly, kAtHand, kPixels},
      {RESMP0, kOnly, kWithBeam, kPlaces},       {RESMP1, kOnly, kWithBeam, kPlaces},
      {HMOVE, kAndMinded, kWithBeam, kPlaces},
      {HMCLR, kOnly, kAtHand, kPixels},
      {CXCLR, kAndMinded, kAtHand, kPixels},
  };
  uint64_t registers = 0;
  for (const WriteFacts& facts : kFacts) registers |= uint64_t{facts.*fact == value} << facts.reg;
  return registers;
}
constexpr uint64_t kOnlyRecorded = registers_where(&WriteFacts::recorded, Recorded::kOnly);
constexpr uint64_t kAllRecorded = kOnlyRecorded | registers_where(&WriteFacts::recorded, Recorded::kAndMinded);
constexpr uint64_t kAtHand = registers_where(&WriteFacts::applied, Applied::kAtHand);
constexpr uint64_t kChangePlaces = registers_where(&WriteFacts::changes, Changes::kPlaces);

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
