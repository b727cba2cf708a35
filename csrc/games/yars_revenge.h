// Yars' Revenge (Atari 1982). Six score digits; over when no life is left.
#pragma once

#include "games/game.h"

namespace cule::games {

struct YarsRevenge : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "yars_revenge";
    game.md5 = "c5930d0e8cdae3e037349bfa08e871be";
    game.starting_actions = {kFire};
    game.modes = {0, 0x20, 0x40, 0x60};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xE0, 0xE1, 0xE2));
    state.lives = memory(0x9E) >> 4;
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.press_select(2);
    console.select_until(1, [&] { return console.ram(0xE3) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
