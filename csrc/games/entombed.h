// Entombed (US Games 1982). The score is a plain byte; over with the last life.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Entombed : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "entombed";
    game.md5 = "6b683be69f92958abe0e2a9945157ad5";
    game.starting_actions = {kFire, kNoop, kNoop, kNoop, kNoop, kNoop};
    game.difficulties = {0, 2};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, memory(0xE3));
    state.terminal = (memory(0xC7) & 0x03) == 0;
  }
};

}  // namespace cule::games
