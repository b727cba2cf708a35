// Assault (Bomb 1983). A six-digit score; over with the last life.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Assault : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "assault";
    game.md5 = "de78b3a064d374390ac0710f95edde92";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kRightFire, kLeftFire);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x80, 0x81, 0x82));
    state.lives = memory(0xE5);
    state.terminal = state.lives == 0;
  }
};

}  // namespace cule::games
