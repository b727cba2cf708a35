// Laser Gates (Imagic 1983). Six digits of score; over when the shields are spent.
#pragma once

#include "games/game.h"

namespace cule::games {

struct LaserGates : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "laser_gates";
    game.md5 = "8e4cd60d93fcde8065c1a2b972a26377";
    game.starting_actions = {kResetSwitch};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x80, 0x81, 0x82));
    state.terminal = memory(0x83) == 0;
  }

  CULE_HD static int lives(const GameState&) { return 0; }
};

}  // namespace cule::games
