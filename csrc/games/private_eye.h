// Private Eye (Activision 1983). The score starts at 1000. The case is over when the copyright
// notice starts to scroll.
#pragma once

#include "games/game.h"

namespace cule::games {

struct PrivateEye : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "private_eye";
    game.md5 = "ef3a4f64b6494ba770862768caf04b86";
    game.starting_actions = {kUp};
    game.modes = game.modes.range(0, 5);
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.score = 1000; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xC8, 0xC9, 0xCA));
    state.terminal = memory(0xC2) > 1;
  }

  // No lives are ever reported.
  CULE_HD static int lives(const GameState&) { return 0; }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
