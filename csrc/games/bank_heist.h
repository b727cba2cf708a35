// Bank Heist (20th Century Fox 1983). A six-digit score; over after a death with no spare car left.
#pragma once

#include "games/game.h"

namespace cule::games {

struct BankHeist : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "bank_heist";
    game.md5 = "00ce0bdd43aed84a983bef38fe7f5ee3";
    game.modes = game.modes.range(0, 8, 4);
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xD8, 0xD9, 0xDA));
    const int death_countdown = memory(0xCE);
    state.lives = memory(0xD5);
    state.terminal = death_countdown == 1 && state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
