// H.E.R.O. (Activision 1984). Six digits of score; over when no life is left.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Hero : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "hero";
    game.md5 = "fca4a5be1251927027f2c24774a02160";
    game.modes = game.modes.range(0, 5);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xB7, 0xB8, 0xB9));
    state.lives = memory(0xB3);
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
