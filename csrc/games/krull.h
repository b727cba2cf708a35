// Krull (Atari 1983). Six digits of score; over when no life is in reserve and two state bytes show
// the closing screen.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Krull : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "krull";
    game.md5 = "4baada22435320d185c95b7dd2bcdb24";
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x9C, 0x9D, 0x9E));
    const int reserve = memory(0x9F);
    state.terminal = reserve == 0 && memory(0xA2) == 0x03 && memory(0x80) == 0x80;
    state.lives = (reserve & 7) + 1;
  }
};

}  // namespace cule::games
