// Kung-Fu Master (Activision 1987). Six digits of score; over when the count of lives in reserve
// falls below zero.
#pragma once

#include "games/game.h"

namespace cule::games {

struct KungFuMaster : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "kung_fu_master";
    game.md5 = "5b92a93b23523ff16e2789b820e2a4c5";
    game.minimal_actions = kAllActions & ~action_set(kFire, kUpRight, kUpLeft, kUpFire);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x98, 0x99, 0x9A));
    const int reserve = memory(0x9D);
    state.terminal = reserve == 0xFF;
    state.lives = (reserve & 7) + 1;
  }
};

}  // namespace cule::games
