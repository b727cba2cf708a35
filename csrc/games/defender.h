// Defender (Atari 1982). Six score digits in a byte each, where 10 is a blank; over with the last
// ship.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Defender : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "defender";
    game.md5 = "0f643c34e40e3f1daafd9c524d3ffe64";
    game.modes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};  // 16 is the easy game
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int score = 0;
    for (int address = 0xA1; address >= 0x9C; --address) {
      const int digit = memory(address) & 0x0F;
      score = 10 * score + (digit == 10 ? 0 : digit);
    }
    reward_score_change(state, score);
    state.lives = memory(0xC2);
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x9B) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
