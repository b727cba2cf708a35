// E.T. the Extra-Terrestrial (Atari 1982). A six-digit score, handed out on the screen between
// rounds; over when the title screen (8 in $80) is back and the count of spare lives has run below
// zero.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Et : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "et";
    game.md5 = "615a3bf251a38eb6638cdc7ffbde5480";
    game.modes = {0, 1, 2};
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 0; }

  // The lives are a signed byte.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xDF, 0xE0, 0xE1));
    state.lives = static_cast<int8_t>(memory(0xE5) + 1);
    state.terminal = state.lives == 0 && memory(0x80) == 8;
  }

  // SELECT must be held long to be noticed.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(25, [&] { return console.ram(0xEA) - 1 == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
