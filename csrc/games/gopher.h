// Gopher (U.S. Games 1982). Six digits of score; each of the three carrots counts as a life.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Gopher : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "gopher";
    game.md5 = "c16c79aad6272baffb8aae9a7fff0864";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kUpFire, kRightFire,
                                      kLeftFire);
    game.starting_actions = {kFire};
    game.modes = {0, 2};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xB0, 0xB1, 0xB2));
    const int carrots = memory(0xB4);  // a bit each
    state.lives = (carrots & 1) + ((carrots >> 1) & 1) + ((carrots >> 2) & 1);
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.soft_reset();
    console.select_until(5, [&] { return console.ram(0xD3) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
