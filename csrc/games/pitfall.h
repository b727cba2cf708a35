// Pitfall! (Activision 1982). Six digits of score, which starts at 2,000; over when no life is in
// reserve and Harry can no longer be moved.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Pitfall : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "pitfall";
    game.md5 = "3e90cf23106f2e08b2781e41299de556";
    game.starting_actions = {kUp};
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    state.score = 2000;
    state.lives = 3;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xD5, 0xD6, 0xD7));
    const int reserve = memory(0x80) >> 4;  // drawn as a pattern: two bars, one, none
    state.terminal = reserve == 0 && memory(0x9E) != 0;
    state.lives = reserve == 0x0A ? 3 : reserve == 0x08 ? 2 : 1;
  }
};

}  // namespace cule::games
