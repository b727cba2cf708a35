// Kool-Aid Man (M Network 1983). The score counts in hundreds; a flag says that the game is over.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Koolaid : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "koolaid";
    game.md5 = "534e23210dd1993c828d944c6ac4d9fb";
    game.minimal_actions = action_set(kNoop) | kEightWays;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0x80, 0x81));
    state.terminal = memory(0xD1) == 0x80;
  }

  CULE_HD static int lives(const GameState&) { return 0; }
};

}  // namespace cule::games
