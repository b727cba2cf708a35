// Carnival (Coleco 1982). Four score digits in units of ten; over when there are no bullets left.
// There are no lives: always 0.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Carnival : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "carnival";
    game.md5 = "028024fb8e5e5f18ea586652f9799c96";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.y_start = 26;
    game.height = 214;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 10 * bcd_score(memory, 0xAD, 0xAE));
    state.terminal = memory(0x83) == 0;
  }

  CULE_HD static int lives(const GameState&) { return 0; }
};

}  // namespace cule::games
