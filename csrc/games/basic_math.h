// Basic Math (Atari 1977). One point for each right answer out of ten; over when the final screen
// is up.
#pragma once

#include "games/game.h"

namespace cule::games {

struct BasicMath : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "basic_math";
    game.md5 = "819aeeb9a2e11deb54e6de334f843894";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kDown);
    game.modes = {5, 6, 7, 8};
    game.difficulties = {0, 2, 3};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0x84)));
    state.terminal = memory(0x86) != 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xC5) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
