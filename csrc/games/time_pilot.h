// Time Pilot (Coleco 1983). Four digits, in hundreds; a flag says that it is over. The lives are
// only read while the plane flies.
#pragma once

#include "games/game.h"

namespace cule::games {

struct TimePilot : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "time_pilot";
    game.md5 = "fc2104dd2dadf9a6176c1c1c8f87ced9";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kDown, kUpFire, kRightFire,
                                      kLeftFire, kDownFire);
    game.difficulties = {0, 1, 2};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0x8F, 0x8D));
    state.terminal = memory(0xA0) != 0;
    const bool flies = (memory(0x80) & 0x0F) == 2;
    if (flies) state.lives = (memory(0x8B) & 7) + 1;
  }
};

}  // namespace cule::games
