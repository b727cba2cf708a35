// Pitfall II: Lost Caverns (Activision 1984). The score starts at 4000 and cannot run out: Harry
// never dies, and only the perfect score of 199000 ends the game.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Pitfall2 : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "pitfall2";
    game.md5 = "6d842c96d5a01967be9680080dd5be54";
    game.starting_actions = {kUp};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.score = 4000; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xC7, 0xC8, 0xC9));
    state.terminal = state.score == 199000;
  }
};

}  // namespace cule::games
