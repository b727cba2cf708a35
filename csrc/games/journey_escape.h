// Journey Escape (Data Age 1982). The score is the cash. The 50,000 at the start bring no reward;
// the clock ends the game.
#pragma once

#include "games/game.h"

namespace cule::games {

struct JourneyEscape : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "journey_escape";
    game.md5 = "718ae62c70af4e5fd8e932fee216948a";
    game.minimal_actions = kAllActions & ~action_set(kFire, kUpFire);
    game.starting_actions = {kFire};
    game.difficulties = {0, 1};
    game.height = 230;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x90, 0x91, 0x92));
    if (state.reward == 50000) state.reward = 0;
    const int minutes = memory(0x95);
    const int seconds = memory(0x96);
    state.terminal = minutes == 0 && seconds == 0;
  }

  CULE_HD static int lives(const GameState&) { return 0; }
};

}  // namespace cule::games
