// Enduro (Activision 1983). One point for each car passed: 200 on the first day, 300 on each later
// one. Over when a day ends too soon. There are no lives: always 0.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Enduro : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "enduro";
    game.md5 = "94b92a882f6dbaa6993a46e2dcc58402";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kDown, kDownRight, kDownLeft,
                                      kRightFire, kLeftFire);
    game.starting_actions = {kFire};
    return game;
  }

  // The cartridge counts the cars that are still to be passed; day 0 is before the start.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int day = memory(0xAD);
    const int to_pass = bcd_score(memory, 0xAC, 0xAB);
    reward_score_change(state, day == 0 ? 0 : 200 + 300 * (day - 1) - to_pass);
    state.terminal = memory(0xAF) == 0xFF;
  }

  CULE_HD static int lives(const GameState&) { return 0; }
};

}  // namespace cule::games
