// Keeping lanes together: a frame is run in turns of some scanlines, before each of which the lanes
// of a warp meet. On the CPU nobody waits.
#pragma once

#include "console/machine.h"

namespace cule {

// Runs the frame in step with the other lanes of the warp: `advance(lanes, end)` runs to cycle
// `end`, one *turn* of some scanlines after the other. A game's program follows the beam, so that
// consoles at the same scanlines are at much the same place in it: there they execute the same
// code, and look for the same collisions, together.
//
// `pace` knows the lanes that begin the frame together, and brings them together before each turn
// as long as their frames go on; it is told where the next one begins, and may have them wait. What
// `advance` begins before cycle `end` takes `longest` cycles at most to its last write to the TIA.
template <class M, class Pace, class Advance>
CULE_INLINE void run_in_step(M& m, const Pace& pace, int32_t longest, const Advance& advance) {
  const int32_t turn = pace.turn_lines() * kCyclesPerLine;
  int32_t begin = stretch_end(m.config.format, m.cycle) - kStretchCycles, stretch = begin;
  for (uint32_t lanes = pace.lanes(); lanes = pace.meet(lanes, m.runs()), m.runs();
       begin += turn) {
    pace.begin_turn(lanes, begin);
    if (begin == stretch) {
      stretch += kStretchCycles;
      m.begin_stretch(stretch, longest);
    }
    advance(lanes, begin + turn);
  }
}

// Where lanes are in the program's order: blocks have it by their numbers (cule/translation/). What
// is interpreted comes after the block before it, and has an odd place: lanes that interpret do it
// together, wherever they are. Where a program interprets much, that is best done when all lanes
// come to it, after all blocks. A lane that has nothing left to do in a turn is after all others.
CULE_INLINE constexpr uint32_t place_of_block(uint32_t number) { return 2 * number; }
CULE_INLINE constexpr uint32_t place_after(uint32_t number) { return 2 * number + 1; }
CULE_INLINE constexpr bool is_interpreted(uint32_t place) { return (place & 1) != 0; }
constexpr uint32_t kAfterAllBlocks = 0xFFFFFFFD, kNowhere = 0xFFFFFFFE;

// Waits for nobody.
struct FreePace {
  CULE_INLINE uint32_t lanes() const { return 0; }
  CULE_INLINE uint32_t meet(uint32_t, bool) const { return 0; }
  CULE_INLINE int32_t turn_lines() const { return kStretchLines; }
  CULE_INLINE void begin_turn(uint32_t, int32_t) const {}
  // Its lanes are one.
  struct Group {
    bool any, mine;
    CULE_INLINE bool goes_on_at(uint32_t) const { return true; }
  };
  CULE_INLINE Group at_lowest_place(uint32_t, uint32_t place) const {
    return {place != kNowhere, place != kNowhere};
  }
};

// A core whose lanes go at a pace.
template <class Core, class Pace>
struct PacedCore {
  Core core;
  Pace pace;
  static CULE_INLINE auto game_of(const ConsoleConfig& config) { return Core::game_of(config); }
  static CULE_INLINE const Predecoded* marked_ops(const Predecoded* marked,
                                                  const Predecoded* unmarked) {
    return Core::marked_ops(marked, unmarked);
  }
  template <class M>
  CULE_INLINE void run(M& m) const {
    pace.begin_frame();
    core.run(m, pace);
  }
};

}  // namespace cule
