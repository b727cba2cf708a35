// Elevator Action (Atari, a prototype of 1983). A six-digit score; over with the last life. The
// title screen, where $81 is zero, shows no lives either.
#pragma once

#include "games/game.h"

namespace cule::games {

struct ElevatorAction : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "elevator_action";
    game.md5 = "71f8bacfbdca019113f3f0801849057e";
    // fire, held for 16 frames
    game.starting_actions = game.starting_actions.range(kFire, 16, Action{0});
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x87, 0x88, 0x89));
    state.lives = memory(0x83);
    state.terminal = state.lives == 0 && memory(0x81) != 0;
  }
};

}  // namespace cule::games
