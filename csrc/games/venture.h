// Venture (Coleco 1982). Four digits, in hundreds; over when the last life's death is shown and its
// sound has ended.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Venture : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "venture";
    game.md5 = "3e899eba0ca8cd2972da1ae5479b4f0d";
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0xC7, 0xC8));
    const int spare_lives = memory(0xC6);
    const bool dying = (memory(0xBF) & 0x80) != 0;
    state.terminal = spare_lives == 0 && memory(0xCD) == 0xFF && dying;
    state.lives = (spare_lives & 7) + 1;
  }
};

}  // namespace cule::games
