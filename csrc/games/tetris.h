// Tetris 26 (Colin Hughes). Four score digits; a score that falls costs nothing. A flag says that
// the pile is full.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Tetris : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "tetris";
    game.md5 = "b0e1ee07fbc73493eac5651a52f90f00";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kDown);
    game.writes_much = true;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xF2, 0xF1));
    if (state.reward < 0) state.reward = 0;
    state.terminal = (memory(0xF3) & 0x80) != 0;
    if (state.terminal) state.score = 0;
  }

  // No lives are ever reported.
  CULE_HD static int lives(const GameState&) { return 0; }
};

}  // namespace cule::games
