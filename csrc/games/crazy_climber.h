// Crazy Climber (Atari 1983). Four score digits in a byte each, in units of a hundred; no reward is
// negative. Over with the last life.
#pragma once

#include "games/game.h"

namespace cule::games {

struct CrazyClimber : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "crazy_climber";
    game.md5 = "55ef7b65066428367844342ed59f956c";
    game.minimal_actions = action_set(kNoop) | kEightWays;
    game.modes = game.modes.range(0, 4);
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int score = 0;
    for (int address = 0x85; address >= 0x82; --address) score = 10 * score + memory(address);
    reward_score_change(state, 100 * score);
    if (state.reward < 0) state.reward = 0;
    state.lives = memory(0xAA);
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
