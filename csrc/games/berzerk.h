// Berzerk (Atari 1982). A six-digit score; over when the count of spare lives runs below zero.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Berzerk : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "berzerk";
    game.md5 = "136f75c4dd02c29283752b7e5799f978";
    game.modes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x11, 0x12};  // in BCD
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xDD, 0xDE, 0xDF));
    const int spare = memory(0xDA);
    state.terminal = spare == 0xFF;
    state.lives = spare + 1;
  }

  // SELECT is ignored for a while after a reset.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    for (int frame = 0; frame < 20; ++frame) console.act(kNoop);
    console.select_until(2, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
