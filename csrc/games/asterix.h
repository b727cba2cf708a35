// Asterix (Atari 1983). A six-digit score; over on the last frame of the last life's death, since a
// held fire button would start a new game before the lives are seen to reach zero.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Asterix : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "asterix";
    game.md5 = "89a68746eff7f266bbf08de2483abe55";
    game.minimal_actions = action_set(kNoop) | kEightWays;
    game.starting_actions = {kFire};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xDE, 0xDF, 0xE0));
    const int death_countdown = memory(0xC7);
    state.lives = memory(0xD3) & 0x0F;
    state.terminal = death_countdown == 1 && state.lives == 1;
  }
};

}  // namespace cule::games
