// Kaboom! (Activision 1981). Six digits of score; over when the last bucket is gone, or at 999,999.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Kaboom : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "kaboom";
    game.md5 = "5428cdfada281c569c74c7308c7f2c26";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft);
    game.starting_actions = {kFire};
    game.left = Controller::kPaddles;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xA3, 0xA4, 0xA5));
    state.terminal = memory(0xA1) == 0 || state.score == 999999;
  }
};

}  // namespace cule::games
