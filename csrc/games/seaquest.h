// Seaquest (Activision 1983). Six score digits; a flag says that the game is over.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Seaquest : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "seaquest";
    game.md5 = "240bfbac5163af4df5ae713985386f92";
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xB8, 0xB9, 0xBA));
    state.terminal = memory(0xA3) != 0;
    state.lives = memory(0xBB) + 1;
  }
};

}  // namespace cule::games
