// Pong (Video Olympics, Atari 1978). Against the computer; the first to 21 points wins.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Pong : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "pong";
    game.md5 = "60e0ea3cbe0913d39803477945e9e5ec";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.modes = {0, 1};
    game.difficulties = {0, 1, 2, 3};
    game.left = game.right = Controller::kPaddles;
    game.swap_paddles = true;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int computer = memory(0x8D);
    const int player = memory(0x8E);
    reward_score_change(state, player - computer);
    state.terminal = computer == 21 || player == 21;
  }

  CULE_HD static int lives(const GameState&) { return 0; }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x96) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
