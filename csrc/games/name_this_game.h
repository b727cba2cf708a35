// Name This Game (U.S. Games 1982). Six digits of score; over when no life is left.
#pragma once

#include "games/game.h"

namespace cule::games {

struct NameThisGame : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "name_this_game";
    game.md5 = "36306070f0c90a72461551a7a4f3a209";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.modes = {0x08, 0x18, 0x28};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xC4, 0xC5, 0xC6));
    state.lives = memory(0xC7) & 7;
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xDE) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
