// Turmoil (20th Century Fox 1982). Four digits, to which a byte is added, in tens. Over when no
// ship is left and the game-over state has come.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Turmoil : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "turmoil";
    game.md5 = "7a5463545dfb2dcfdafa6074b2f2c15e";
    game.minimal_actions = action_set(kNoop, kFire, kRightFire, kLeftFire) | kEightWays;
    game.starting_actions = {kFire};
    game.modes = game.modes.range(0, 9);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 10 * (bcd_score(memory, 0x8A, 0x89) + memory(0xD3)));
    state.lives = memory(0xB9);
    state.terminal = state.lives == 0 && memory(0xC5) == 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xEA) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
