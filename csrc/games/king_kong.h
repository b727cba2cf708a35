// King Kong (Tigervision 1982). Four digits of score; over when no life is left.
#pragma once

#include "games/game.h"

namespace cule::games {

struct KingKong : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "king_kong";
    game.md5 = "0dd4c69b5f9a7ae96a7a08329496779a";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kDown);
    game.modes = game.modes.range(0, 4);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x82, 0x83));
    state.lives = memory(0xEE);
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    // The cartridge alternates games for one player and for two.
    console.select_until(2, [&] { return console.ram(0xEC) == 2 * mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
