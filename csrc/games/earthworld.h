// SwordQuest: EarthWorld (Atari 1982). One point for each clue found; over at the tenth.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Earthworld : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "earthworld";
    game.md5 = "5aea9974b975a6a844e6df10d2b861c4";
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0xA7)));
    state.terminal = state.score == 10;
  }
};

}  // namespace cule::games
