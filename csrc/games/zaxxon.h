// Zaxxon (Coleco 1982). Four digits, in hundreds; over when no ship is left.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Zaxxon : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "zaxxon";
    game.md5 = "eea0da9b987d661264cce69a7c13c3bd";
    game.modes = {0, 8, 16, 24};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0xE8, 0xE9));
    state.lives = memory(0xEA) & 7;
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(10, [&] { return console.ram(0x82) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
