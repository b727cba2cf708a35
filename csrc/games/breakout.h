// Breakout (Atari 1978). Five balls; the score has three digits.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Breakout : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "breakout";
    game.md5 = "f34f08e5eb96e500e851a80be3277a56";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft);
    game.modes = game.modes.range(0, 12, 4);
    game.difficulties = {0, 1};
    game.left = Controller::kPaddles;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * (memory(0xCC) & 0x0F) + bcd(memory(0xCD)));
    const int balls = memory(0xB9);
    if (balls == 5) state.started = true;
    state.terminal = state.started && balls == 0;
    state.lives = balls;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0xB2) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
