// Stargunner (Telesys 1982). Four score digits in a byte each, in hundreds, where 10 is a blank.
// Over when no ship is left; five are reported until the game has set up its own count.
#pragma once

#include "games/game.h"

namespace cule::games {

struct StarGunner : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "star_gunner";
    game.md5 = "a3c1c70024d7aabb41381adbfb6d3b25";
    game.modes = game.modes.range(0, 4);
    return game;
  }

  CULE_HD static int digit(int byte) { return (byte & 0x0F) == 10 ? 0 : byte & 0x0F; }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int score = 0;
    for (int address = 0x86; address >= 0x83; --address)
      score = score * 10 + digit(memory(address));
    reward_score_change(state, 100 * score);
    const int ships = memory(0x87);
    state.terminal = ships == 0;
    if (ships == 5) state.started = true;
    state.lives = state.started ? ships & 0x0F : 5;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(15, [&] { return console.ram(0xF4) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
