// Frostbite (Activision 1983). Six digits of score; over once the last life is lost and the
// game-over flag is up.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Frostbite : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "frostbite";
    game.md5 = "4ca73eb959299471788f0b685c3ba0b5";
    game.modes = {0, 2};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xC8, 0xC9, 0xCA));
    const int reserve = memory(0xCC) & 0x0F;
    state.terminal = reserve == 0 && (memory(0xF1) & 0x80) != 0;
    state.lives = reserve + 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
