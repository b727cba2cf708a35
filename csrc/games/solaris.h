// Solaris (Atari 1986). Six digits, in tens; over when no ship is left.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Solaris : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "solaris";
    game.md5 = "e72eb8d4410152bdcb69e7fba327b420";
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 10 * bcd_score(memory, 0xDE, 0xDD, 0xDC));
    const int ships = memory(0xD9);
    state.terminal = ships == 0;
    state.lives = ships & 0x0F;
  }
};

}  // namespace cule::games
