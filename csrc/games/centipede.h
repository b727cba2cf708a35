// Centipede (Atari 1983). A six-digit score, which may be cleared before the game is over: no
// reward is negative.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Centipede : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "centipede";
    game.md5 = "91c2098e88a6b13f977af8c003e0bca5";
    game.modes = {0x16, 0x56};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xF4, 0xF5, 0xF6));
    if (state.reward < 0) state.reward = 0;
    state.lives = ((memory(0xED) >> 4) & 0x07) + 1;
    state.terminal = (memory(0xA6) & 0x40) != 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xA7) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
