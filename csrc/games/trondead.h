// TRON: Deadly Discs (M Network 1982). Six score digits; the fifth hit ends the game.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Trondead : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "trondead";
    game.md5 = "fb27afe896e7c928089307b32e5642ee";
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xBD, 0xBE, 0xBF));
    const int hits = memory(0xC8);
    state.terminal = hits == 5;
    state.lives = 5 - hits;
  }
};

}  // namespace cule::games
