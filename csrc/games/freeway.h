// Freeway (Activision 1981). One point per road crossed, which is never taken back; the clock ends
// the game.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Freeway : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "freeway";
    game.md5 = "8e0ab801b1705a740b476b7f588c6d16";
    game.minimal_actions = action_set(kNoop, kUp, kDown);
    game.modes = game.modes.range(0, 8);
    game.difficulties = {0, 1};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0xE7)));
    if (state.reward < 0) state.reward = 0;
    if (state.reward > 1) state.reward = 1;
    state.terminal = memory(0x96) == 1;
  }

  CULE_HD static int lives(const GameState&) { return 0; }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
