// Frogger (Parker Brothers 1982). Four digits of score; over when the count of frogs in reserve
// falls below zero.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Frogger : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "frogger";
    game.md5 = "081e2c114c9c20b61acf25fc95c71bf4";
    game.minimal_actions = action_set(kNoop, kUp, kRight, kLeft, kDown);
    game.modes = {0, 1, 2};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xCC, 0xCE));
    state.lives = memory(0xD0);
    state.terminal = state.lives == 0xFF;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    // The cartridge alternates games for one player and for two.
    console.select_until(2, [&] { return console.ram(0xDD) == 2 * mode + 1; });
    console.soft_reset();
  }
};

}  // namespace cule::games
