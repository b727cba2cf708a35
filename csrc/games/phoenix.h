// Phoenix (Atari 1983). The score counts in tens, five digits of them; a state byte says that the
// game is over.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Phoenix : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "phoenix";
    game.md5 = "7e52a95074a66640fcfde124fffd491a";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kDown, kRightFire, kLeftFire,
                                      kDownFire);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int tens = 10 * bcd_score(memory, 0xC9, 0xC8) + (memory(0xC7) >> 4);
    reward_score_change(state, 10 * tens);
    state.terminal = memory(0xCC) == 0x80;
    state.lives = memory(0xCB) & 7;
  }
};

}  // namespace cule::games
