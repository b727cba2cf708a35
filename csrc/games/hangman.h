// Hangman (Atari 1978). One word per episode: +1 if guessed, -1 if not. The episode also ends when
// the game's timer, which restarts at each guess, wraps around.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Hangman : Game {
  static constexpr int kTimer = 0;  // as of the last frame

  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "hangman";
    game.md5 = "f16c709df0a6c52f47ff52b9d95b7d8d";
    game.modes = game.modes.range(0, 4);
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.aux[kTimer] = -1; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int computer = bcd(memory(0xEC));
    const int player = bcd(memory(0xEB));
    reward_score_change(state, player - computer);
    const int timer = memory(0xF1);
    const bool timed_out = timer == 0 && state.aux[kTimer] == 0xFF;
    state.aux[kTimer] = timer;
    state.terminal = state.reward != 0 || timed_out;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xEE) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
