// Crossbow (Atari 1987). A six-digit score; over when the game-over screen comes up.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Crossbow : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "crossbow";
    game.md5 = "8cd26dcf249456fe4aeb8db42d49df74";
    game.modes = {0, 2, 4, 6};
    game.difficulties = {0, 1};
    game.writes_much = true;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x8B, 0x8C, 0x8D));
    state.terminal = memory(0xE7) == 0x82;
  }

  // On the title screen the low score byte shows the mode, counted from 1.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x8D) - 1 == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
