// Galaxian (Atari 1983). Six digits of score, which roll over; a flag says that the game is over.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Galaxian : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "galaxian";
    game.md5 = "211774f4c5739042618be8ff67351177";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.modes = game.modes.range(1, 9);
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int before = state.score;
    reward_score_change(state, bcd_score(memory, 0xAC, 0xAD, 0xAE));
    if (state.reward < 0) state.reward = 1000000 - before + state.score;
    state.terminal = (memory(0xBF) & 0x80) != 0;
    state.lives = state.terminal ? 0 : memory(0xB9) + 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0xB3) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
