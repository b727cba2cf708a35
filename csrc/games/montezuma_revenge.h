// Montezuma's Revenge (Parker Brothers 1984). Six digits of score; over when the last life is lost
// and the closing state is reached.
#pragma once

#include "games/game.h"

namespace cule::games {

struct MontezumaRevenge : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "montezuma_revenge";
    game.md5 = "3347a6dd59049b15a38394aa2dafa585";
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 6; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x93, 0x94, 0x95));
    const int reserve = memory(0xBA);
    state.terminal = reserve == 0 && memory(0xFE) == 0x60;
    state.lives = (reserve & 7) + 1;
  }
};

}  // namespace cule::games
