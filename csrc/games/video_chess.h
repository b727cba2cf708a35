// Video Chess (Atari 1979). Against the computer: 1 for mating it, -1 for being mated. The board is
// read only on the player's turn, because the computer tries out moves on it.
#pragma once

#include "games/game.h"

namespace cule::games {

struct VideoChess : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "video_chess";
    game.md5 = "f0b7db930ca0e548c41a97160b9f6275";
    game.minimal_actions = action_set(kNoop, kFire) | kEightWays;
    game.modes = game.modes.range(0, 5);
    game.frames_cut_off = true;
    return game;
  }

  // Once over, it stays over until the next reset.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    state.reward = 0;
    const bool players_turn = memory(0xE1) == 0x82;
    const int mate = memory(0xEE);  // 0: the computer is mated, 1: the player is
    if (!players_turn || mate > 1) return;
    state.reward = mate == 0 ? 1 : -1;
    state.terminal = true;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0xEA) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
