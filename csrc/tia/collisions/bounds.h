// What the objects have shown since some moment, and the places that they have left. It is noted as
// the program writes. Mostly no two objects of a latch that is read have been in the same place.
// Then there is no need to search for collisions (tia/collisions/prefilter.h).
//
// This is never too little, but may be too much: whatever an object has shown at one moment counts
// for the whole time, and for all places where the object has been. The chip has nothing like it.
// It spares the work of drawing for collisions.
#pragma once

#include "tia/chip/collision_latches.h"
#include "tia/chip/motion.h"
#include "tia/chip/write_facts.h"

namespace cule {

// What the objects have shown. Most writes need one or two instructions to add to it.
struct ShownBounds {
  // From the lowest bit: all bits of player 0's graphics (8 bits), those of player 1 (8 bits), a
  // bit each for whether missile 0, missile 1 and the ball have been on, and a bit for each player
  // whose REFPx has changed.
  uint32_t shapes = 0;
  // All bits of TiaState::playfield; a bit for whether its right half has repeated the left half,
  // and one for whether it has mirrored the left half.
  uint32_t playfield = 0;

  static constexpr uint32_t kMissilesAndBall = 16;  // the first bit of missiles and ball
  static constexpr uint32_t kTurned = 1u << 19;     // for player 0; player 1's is the next bit
  static constexpr uint32_t kPlayfieldBits = 0xFFFFF, kRepeated = 1u << 20, kMirrored = 1u << 21;

  ShownBounds() = default;
  // Begins with what `tia` shows.
  CULE_INLINE explicit ShownBounds(const TiaState& tia) { add(tia); }

  // Adds what `tia` shows. New graphics always count, as they can become old ones and then show.
  CULE_INLINE void add(const TiaState& tia) {
    if (tia.vblank & 2) return;
    const uint32_t grp = tia.grp.word, missiles = tia.enam.word & ~uint32_t{tia.resmp.word};
    const uint32_t balls = tia.enabl[0] | (tia.vdelbl & tia.enabl[1]);
    shapes |= ((grp | (grp >> 16 & tia.vdelp.word * 0xFFu)) & 0xFFFF) |
              ((missiles & 1) | (missiles >> 8) << 1 | balls << 2) << kMissilesAndBall;
    playfield |= tia.playfield | halves_of(tia);
  }

  // Adds what a write shows. `tia` is the state after the write.
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
      *this = with_all_of(*this, tia);
    }
  }

  // One bit for each TiaObject that may have been on.
  CULE_INLINE uint32_t on() const {
    return players_of(shapes) | (shapes >> kMissilesAndBall & 7) << kMissile0 |
           static_cast<uint32_t>((playfield & kPlayfieldBits) != 0) << kPlayfield;
  }

 private:
  // The bits for the right half of the playfield, on this scanline and the next.
  static CULE_INLINE uint32_t halves_of(const TiaState& tia) {
    return (tia.reflect_now ? kMirrored : kRepeated) | (tia.ctrlpf & 1 ? kMirrored : kRepeated);
  }
  static CULE_COLD ShownBounds with_all_of(ShownBounds seen, const TiaState& tia) {
    seen.add(tia);
    return seen;
  }
};

// The place of a movable object, packed into a word: from bit 0 the object, from bit 8 its
// position, from bit 16 its width, from bit 24 the distances of its copies.
CULE_INLINE uint32_t packed_place(const TiaState& tia, uint32_t object) {
  const Extent place = place_of(tia, object);
  return object | static_cast<uint32_t>(place.position) << 8 | place.width << 16 |
         place.distances << 24;
}

// The places that objects have left, in the format of packed_place.
struct PlacesLeft {
  // There are seldom more: in seaquest, at one in six checks for collisions.
  static constexpr uint32_t kMax = 8, kAnywhere = kMax + 1;
  uint32_t objects;  // the objects whose places are noted, with a bit for each
  uint32_t count;    // of `places`; kAnywhere: not all places are known
  uint32_t places[kMax];

  // Starts from `tia`, for the objects of `latches`.
  CULE_INLINE void begin(const TiaState& tia, uint32_t latches) {
    objects = objects_of_latches(latches) & kMovableObjects;
    count = has_stars(tia) ? kAnywhere : 0;
  }
  CULE_INLINE bool knows_all() const { return count < kAnywhere; }

  // Notes the places of the objects `moved`, which are about to move.
  CULE_INLINE void leave(const TiaState& tia, uint32_t moved) {
#pragma unroll 1
    for (uint32_t left = moved & objects; left; left &= left - 1) {
      add(packed_place(tia, lowest_object(left)));
    }
  }
  // Notes the places that the next write makes objects leave. The write must not be a direct one
  // (write_facts.h).
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
