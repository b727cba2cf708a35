// Keystone Kapers (Activision 1983). Four digits of score; over when no life is left and play has
// stopped.
#pragma once

#include "games/game.h"

namespace cule::games {

struct KeystoneKapers : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "keystone_kapers";
    game.md5 = "6c1f3f2e359dbf55df462ccbcdd2f6bf";
    game.minimal_actions = kEightWays |
                           action_set(kNoop, kFire, kUpFire, kRightFire, kLeftFire, kDownFire);
    game.starting_actions = {kResetSwitch};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x9B, 0x9C));
    state.lives = memory(0x96);
    state.terminal = state.lives == 0 && memory(0x88) == 0;
  }
};

}  // namespace cule::games
