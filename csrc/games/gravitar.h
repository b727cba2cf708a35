// Gravitar (Atari 1983). Six digits of score; over when the screen number says so. The ship count
// is not yet in RAM on the opening screen: there it is taken to be six.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Gravitar : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "gravitar";
    game.md5 = "8ac18076d01a6b63acf6e2cab4968940";
    game.starting_actions = game.starting_actions.range(kFire, 16, kNoop);  // FIRE, 16 times
    game.modes = game.modes.range(0, 5);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 6; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x87, 0x88, 0x89));
    const int screen = memory(0x81);
    state.terminal = screen == 1;
    state.lives = screen == 0 ? 6 : memory(0x84) + 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(10, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
