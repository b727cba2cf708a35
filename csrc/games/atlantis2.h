// Atlantis II (Imagic 1982). A six-digit score, which no longer counts on the frame that ends the
// game.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Atlantis2 : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "atlantis2";
    game.md5 = "826481f6fc53ea47c9f272f7050eedf7";
    game.minimal_actions = action_set(kNoop, kFire, kRightFire, kLeftFire);
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    state.lives = memory(0xF1);
    state.terminal = state.lives == 0xFF;
    const int score = bcd_score(memory, 0xA3, 0xA2, 0xA1);
    reward_score_change(state, state.terminal ? state.score : score);
  }
};

}  // namespace cule::games
