// Pac-Man (Atari 1982). Six digits of score; over when the last life is lost, at one moment of the
// death animation.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Pacman : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "pacman";
    game.md5 = "fc2233fc116faef0d3c31541717ca2db";
    game.minimal_actions = action_set(kNoop, kUp, kRight, kLeft, kDown);
    game.modes = game.modes.range(0, 8);
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xD0, 0xCE, 0xCC));
    const int reserve = memory(0x98);
    state.lives = reserve + 1;
    state.terminal = reserve == 0 && memory(0xE4) == 0x3F;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    // The score shows the game, from 1; each comes for one player and for two.
    console.select_until(2,
                         [&] { return console.ram(0xCC) == mode + 1 && console.ram(0xE6) == 0; });
    console.soft_reset();
  }
};

}  // namespace cule::games
