// Combat (Atari 1977). For two only: hits less the other's. Over when the clock has run out, or at
// 99.
#pragma once

#include "games/game.h"

namespace cule::games {

struct CombatOfTwo : GameOfTwo {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "combat";
    game.md5 = "0ef64cdbecccb7049752a3de0b7ade14";
    game.num_players = 2;
    game.modes = game.modes.range(1, 27);
    game.difficulties = {0, 1, 2, 3};
    game.y_start = 39;
    game.height = 256;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int first = bcd(memory(0xA1));
    const int second = bcd(memory(0xA2));
    reward_score_change(state, first - second);
    state.terminal = first == 99 || second == 99 || memory(0x88) == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0x80) == mode - 1; });
    console.soft_reset();
  }
};

}  // namespace cule::games
