// What objects have shown for a while, and the places that they have left, noted as it is written:
// on most scanlines no two that matter have been in the same place, and nothing has to be searched
// (tia/reach.h).
//
// All of it is too much rather than too little: what an object has shown at any time counts for all
// of the time, wherever it has been.
#pragma once

#include "tia/collision.h"
#include "tia/motion.h"
#include "tia/write_facts.h"

namespace cule {

// What the objects have shown. Most writes add to it by an instruction or two.
struct Sightings {
  // Player 0's graphics, in the lowest byte; player 1's; a bit for each that has been on of missile
  // 0, missile 1 and the ball; a bit for each player that has turned round (REFPx).
  uint32_t shapes = 0;
  // As TiaState has it; whether its right half has been the left one again; whether mirrored.
  uint32_t playfield = 0;

  static constexpr uint32_t kMissilesAndBall = 16;  // the first of their bits
  static constexpr uint32_t kTurned = 1u << 19;     // player 0's, before player 1's
  static constexpr uint32_t kPlayfieldBits = 0xFFFFF, kRepeated = 1u << 20, kMirrored = 1u << 21;

  Sightings() = default;
  // From `tia` on.
  CULE_INLINE explicit Sightings(const TiaState& tia) { add(tia); }

  // What `tia` shows. New graphics may become old ones, and be shown.
  CULE_INLINE void add(const TiaState& tia) {
    if (tia.vblank & 2) return;
    const uint32_t grp = tia.grp.word, missiles = tia.enam.word & ~uint32_t{tia.resmp.word};
    const uint32_t balls = tia.enabl[0] | (tia.vdelbl & tia.enabl[1]);
    shapes |= ((grp | (grp >> 16 & tia.vdelp.word * 0xFFu)) & 0xFFFF) |
              ((missiles & 1) | (missiles >> 8) << 1 | balls << 2) << kMissilesAndBall;
    playfield |= tia.playfield | halves_of(tia);
  }

  // What a write shows, which has made the state `tia`.
  template <class Reg>
  CULE_INLINE void note(const TiaState& tia, const Reg reg, uint32_t value) {
    using namespace tia_write;
    constexpr uint64_t kSwitches = registers_where(&WriteFacts::noted, Noted::kSwitch),
                       kPlayfields = registers_where(&WriteFacts::noted, Noted::kPlayfield),
                       kReveals = registers_where(&WriteFacts::noted, Noted::kReveals);
    const uint32_t number = reg.number;
    if (number == GRP0 || number == GRP1) {
      shapes |= value << (number == GRP1 ? 8 : 0);
    } else if (is_among(kSwitches, number)) {
      shapes |= (value >> 1 & 1) << (kMissilesAndBall + number - ENAM0);
    } else if (is_among(kPlayfields, number)) {
      playfield |= set_playfield(0, number, value);
    } else if (number == REFP0 || number == REFP1) {
      shapes |= kTurned << (number - REFP0);
    } else if (is_among(kReveals, number)) {
      *this = and_all_of(*this, tia);
    }
  }

  // One bit for each TiaObject that may have been on.
  CULE_INLINE uint32_t on() const {
    return players_of(shapes) | (shapes >> kMissilesAndBall & 7) << kMissile0 |
           static_cast<uint32_t>((playfield & kPlayfieldBits) != 0) << kPlayfield;
  }

 private:
  // On this scanline and the next.
  static CULE_INLINE uint32_t halves_of(const TiaState& tia) {
    return (tia.reflect_now ? kMirrored : kRepeated) | (tia.ctrlpf & 1 ? kMirrored : kRepeated);
  }
  static CULE_COLD Sightings and_all_of(Sightings seen, const TiaState& tia) {
    seen.add(tia);
    return seen;
  }
};

// Where a movable object is, how wide and with what copies: from bit 0 which it is, and from bits
// 8, 16 and 24 its Extent.
CULE_INLINE uint32_t packed_place(const TiaState& tia, uint32_t object) {
  const Extent place = place_of(tia, object);
  return object | static_cast<uint32_t>(place.position) << 8 | place.width << 16 |
         place.distances << 24;
}

// The places that objects have left, as packed_place has them.
struct PlacesLeft {
  // More are seldom (of seaquest's looks for collisions, one in six).
  static constexpr uint32_t kMax = 8, kAnywhere = kMax + 1;
  uint32_t objects;  // those that matter, a bit for each
  uint32_t count;    // kAnywhere: not all are known
  uint32_t places[kMax];

  // From `tia` on.
  CULE_INLINE void begin(const TiaState& tia, uint32_t latches) {
    objects = objects_of_latches(latches) & kMovableObjects;
    count = has_stars(tia) ? kAnywhere : 0;
  }
  CULE_INLINE bool knows_all() const { return count < kAnywhere; }

  // Those of `moved` are about to move.
  CULE_INLINE void leave(const TiaState& tia, uint32_t moved) {
#pragma unroll 1
    for (uint32_t left = moved & objects; left; left &= left - 1) {
      add(packed_place(tia, lowest_object(left)));
    }
  }
  // A register, which is not at hand (write_facts.h), is about to be written to.
  template <uint32_t kReg>
  CULE_INLINE void note(const TiaState& tia, const KnownRegister<kReg>, int cycle_in_line) {
    using namespace tia_write;
    constexpr ObjectFactsOf kTable = objects_of_registers();
    constexpr uint32_t kMoved = objects_moved_by(kTable.of[kReg]);
    if (objects == 0 || !knows_all()) return;
    if (kReg == HMM0 || has_stars(tia)) {
      count = kAnywhere;
    } else if (kReg != HMOVE) {
      leave(tia, kMoved);
    } else {
      uint32_t moved = 0;
#pragma unroll 1
      for (uint32_t left = may_move(tia, cycle_in_line); left; left &= left - 1) {
        const uint32_t object = lowest_that_may_move(left);
        const int distance = hmove_distance(cycle_in_line, static_cast<int>(tia.motion[object]));
        moved |= static_cast<uint32_t>(distance != 0) << object;
      }
      leave(tia, moved);
    }
  }

 private:
  CULE_INLINE void add(uint32_t place) {
    uint32_t i = 0;
#pragma unroll 1
    while (i < count && i < kMax && places[i] != place) ++i;
    if (i < count) return;
    if (i < kMax) places[i] = place;
    ++count;
  }
};

}  // namespace cule
