// Skiing (Activision 1980). The score is the time on the clock in hundredths of a second, each of
// which costs 1. Ends at the foot of the slope. No button is used.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Skiing : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "skiing";
    game.md5 = "b76fbadc8ffb1f83e2ca08b6fb4d6c9f";
    game.minimal_actions = action_set(kNoop, kRight, kLeft);
    game.legal_actions = kAllActions & ~kActionsWithFire;
    game.starting_actions = game.starting_actions.range(kDown, 16, kNoop);  // down, 16 times
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int time = 6000 * memory(0xE8) + bcd_score(memory, 0xE9, 0xEA);
    state.reward = state.score - time;
    state.score = time;
    state.terminal = memory(0x91) == 0xFF;
  }

  // No lives are ever reported.
  CULE_HD static int lives(const GameState&) { return 0; }
};

}  // namespace cule::games
