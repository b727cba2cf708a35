// Alien (20th Century Fox 1982). Five score digits in a byte each, in units of ten; over with the
// last life.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Alien : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "alien";
    game.md5 = "f1a0a23e6464d954e3a9579c4ccd01c8";
    game.modes = game.modes.range(0, 4);
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  // The byte of a digit is eight times the digit; $80 is a blank.
  static CULE_INLINE int digit(int byte) { return byte == 0x80 ? 0 : byte >> 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int score = 0;
    for (int address = 0x83; address <= 0x8B; address += 2)
      score = 10 * score + digit(memory(address));
    reward_score_change(state, 10 * score);
    state.lives = memory(0xC0) & 0x0F;
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0x81) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
