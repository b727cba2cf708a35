// What is to be known of the registers that programs write to, a row each, beside their delays (write_delay in tia.h).
#pragma once

#include "tia/registers.h"

namespace cule {

// Whether a write goes into the instruction buffer: no; yes, and that is all that it does on the CPU part's side; or that part minds it,
// too (Machine::write_tia).
enum class Recorded : uint8_t { kNot, kOnly, kAndMinded };
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

// The registers whose facts `fit`, a bit for each. None of the others, such as those of sound, is recorded.
template <class Fit>
constexpr uint64_t registers_that(const Fit& fit) {
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
  for (const WriteFacts& facts : kFacts) registers |= uint64_t{fit(facts)} << facts.reg;
  return registers;
}

CULE_INLINE bool is_among(uint64_t registers, uint32_t reg) {
  const uint32_t low = static_cast<uint32_t>(registers), high = static_cast<uint32_t>(registers >> 32);
  return (reg & 0x20 ? high : low) >> (reg & 0x1F) & 1;
}

// Whether a write to `reg` goes into the buffer: all that can change a picture or a collision.
CULE_INLINE bool is_recorded(uint32_t reg) {
  struct Fit {
    constexpr bool operator()(const WriteFacts& facts) const { return facts.recorded != Recorded::kNot; }
  };
  constexpr uint64_t kRegisters = registers_that(Fit{});
  return is_among(kRegisters, reg);
}
// Whether being recorded is all that a write to `reg` does on the CPU part's side.
CULE_INLINE bool only_recorded(uint32_t reg) {
  struct Fit {
    constexpr bool operator()(const WriteFacts& facts) const { return facts.recorded == Recorded::kOnly; }
  };
  constexpr uint64_t kRegisters = registers_that(Fit{});
  return is_among(kRegisters, reg);
}
CULE_INLINE bool is_at_hand(uint32_t reg) {
  struct Fit {
    constexpr bool operator()(const WriteFacts& facts) const { return facts.applied == Applied::kAtHand; }
  };
  constexpr uint64_t kRegisters = registers_that(Fit{});
  return is_among(kRegisters, reg);
}
CULE_INLINE bool changes_places(uint32_t reg) {
  struct Fit {
    constexpr bool operator()(const WriteFacts& facts) const { return facts.changes == Changes::kPlaces; }
  };
  constexpr uint64_t kRegisters = registers_that(Fit{});
  return is_among(kRegisters, reg);
}

}  // namespace cule
