// Sir Lancelot (Xonox 1983). Six score digits; over when no life is left and the game-over state
// has come.
#pragma once

#include "games/game.h"

namespace cule::games {

struct SirLancelot : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "sir_lancelot";
    game.md5 = "dd0cbe5351551a538414fb9e37fc56e8";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.starting_actions = {kResetSwitch, kLeft};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x9E, 0x9F, 0xA0));
    state.lives = memory(0xA9);
    state.terminal = state.lives == 0 && memory(0xA7) == 0xA0;
  }
};

}  // namespace cule::games
