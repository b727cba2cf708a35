// Keeps the lanes of a warp together: a frame runs in turns of some scanlines, and the lanes meet
// before each turn. On the CPU nothing waits.
#pragma once

#include "console/machine.h"

namespace cule {

// Runs the frame in step with the other lanes of the warp, one *turn* of some scanlines after the
// other. `advance(lanes, end)` runs the program to cycle `end`. A game's program follows the beam,
// so consoles at the same scanlines are at about the same instructions. Together they
// execute the same code and look for the same collisions.
//
// `pace` knows the lanes that begin the frame together. It brings them together before each turn,
// until their frames end. It is told where the next turn begins, and may let lanes wait. What
// `advance` begins before cycle `end` writes to the TIA no later than `longest` cycles after it.
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
      pace.begin_stretch(begin, m.instructions_left);
    }
    advance(lanes, begin + turn);
  }
}

// `pc_order`: a lane's position in the program, by which lanes go on. Blocks are numbered in the
// order of the program (cule/translation/), and have even numbers here. Interpreted instructions
// come after the block that ran before them, and have odd ones: lanes that interpret do so
// together, wherever they are. If much of a program is interpreted, that is done best by all lanes
// together: then it comes after all blocks. A lane that has nothing left to do in a turn is at
// kNowhere, the last.
CULE_INLINE constexpr uint32_t pc_order_of_block(uint32_t number) { return 2 * number; }
CULE_INLINE constexpr uint32_t pc_order_after(uint32_t number) { return 2 * number + 1; }
CULE_INLINE constexpr bool is_interpreted(uint32_t pc_order) { return (pc_order & 1) != 0; }
constexpr uint32_t kAfterAllBlocks = 0xFFFFFFFD, kNowhere = 0xFFFFFFFE;

// The pace of a single lane, which never waits.
struct FreePace {
  CULE_INLINE uint32_t lanes() const { return 0; }
  CULE_INLINE uint32_t meet(uint32_t, bool) const { return 0; }
  CULE_INLINE int32_t turn_lines() const { return kStretchLines; }
  CULE_INLINE void begin_turn(uint32_t, int32_t) const {}
  CULE_INLINE void begin_stretch(int32_t, int32_t) const {}
  // The lane is alone in its group.
  struct Group {
    bool any, mine;
    CULE_INLINE bool goes_on_at(uint32_t) const { return true; }
  };
  CULE_INLINE Group at_lowest_pc_order(uint32_t, uint32_t pc_order) const {
    return {pc_order != kNowhere, pc_order != kNowhere};
  }
};

// A core, and the pace that keeps its lanes together.
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
