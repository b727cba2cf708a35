// Lost Luggage (Apollo 1982). Six digits of score; over when no life is left and the closing
// animation has run out.
#pragma once

#include "games/game.h"

namespace cule::games {

struct LostLuggage : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "lost_luggage";
    game.md5 = "2d76c5d1aad506442b9e9fb67765e051";
    game.minimal_actions = game.legal_actions = kAllActions & ~kActionsWithFire;
    game.starting_actions = {kFire};
    game.modes = {0, 1};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x94, 0x95, 0x96));
    state.lives = memory(0xCA);
    state.terminal = state.lives == 0 && memory(0xC8) == 0x0A && memory(0xA5) == 0 &&
                     memory(0xA9) == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    // Games 1 and 4 are the solo ones; the score shows the number.
    console.select_until(2, [&] { return console.ram(0x94) == 3 * mode + 1; });
    console.soft_reset();
  }
};

}  // namespace cule::games
