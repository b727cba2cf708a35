// 3-D Tic-Tac-Toe (Atari 1980). Against the computer: 1 for four in a row, -1 for the computer's.
// Also over when all 64 cells are taken.
#pragma once

#include "games/game.h"

namespace cule::games {

struct TicTacToe3d : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "tic_tac_toe_3d";
    game.md5 = "0db4f4150fecf77e4ce72ca4d04c052f";
    game.minimal_actions = action_set(kNoop, kFire) | kEightWays;
    game.modes = game.modes.range(0, 9);
    game.difficulties = {0, 2};
    game.frames_cut_off = true;
    return game;
  }

  // Once over, it stays over until the next reset.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    state.reward = 0;
    // the routine that is running
    const bool someone_won = memory(0xFF) == 0xF3 && memory(0xFE) == 0x10;
    if (someone_won) {
      state.reward = memory(0xE1) == 8 ? 1 : -1;
      state.terminal = true;
    }
    for (int cell = 0x9A; cell <= 0xD9; ++cell) {
      if (memory(cell) == 0) return;
    }
    state.terminal = true;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x88) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
