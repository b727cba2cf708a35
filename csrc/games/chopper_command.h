// Chopper Command (Activision 1982). Four score digits in units of a hundred; over with the last
// chopper. The title screen shows no chopper left either, but faces left: the game has started once
// the chopper has faced right.
#pragma once

#include "games/game.h"

namespace cule::games {

struct ChopperCommand : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "chopper_command";
    game.md5 = "c1cb228470a87beb5f36e90ac745da26";
    game.modes = {0, 2};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0xEC, 0xEE));
    state.lives = memory(0xE4) & 0x0F;
    if (memory(0xC2) & 0x01) state.started = true;
    state.terminal = state.started && state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xE0) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
