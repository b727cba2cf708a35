// Demon Attack (Imagic 1982). A six-digit score, which holds $AB $CD $EA until the game first
// starts; over when the last cannon is gone and the display changes.
#pragma once

#include "games/game.h"

namespace cule::games {

struct DemonAttack : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "demon_attack";
    game.md5 = "f0e0addc07971561ab80d9abe1b8d333";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.modes = {1, 3, 5, 7};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const bool unset = memory(0x81) == 0xAB && memory(0x83) == 0xCD && memory(0x85) == 0xEA;
    reward_score_change(state, unset ? 0 : bcd_score(memory, 0x81, 0x83, 0x85));
    const int spare = memory(0xF2);
    state.terminal = spare == 0 && memory(0xF1) == 0xBD;
    state.lives = spare + 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0xEA) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
