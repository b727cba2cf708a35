// Blackjack (Atari 1977). The score is the chips held; over when there are none (shown as blanks),
// or 1000.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Blackjack : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "blackjack";
    game.md5 = "0a981c03204ac2b278ba392674682560";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kDown);
    game.difficulties = {0, 1, 2, 3};
    game.left = Controller::kPaddles;
    game.paddle_max = 795000;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const bool broke = memory(0x86) == 0x0B && memory(0x89) == 0xBB;
    const int chips = broke ? 0 : bcd_score(memory, 0x86, 0x89);
    reward_score_change(state, chips);
    state.terminal = broke || chips >= 1000;
  }
};

}  // namespace cule::games
