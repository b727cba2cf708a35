// Donkey Kong (Coleco 1982). Four score digits in units of a hundred; over once the last Mario has
// come to rest.
#pragma once

#include "games/game.h"

namespace cule::games {

struct DonkeyKong : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "donkey_kong";
    game.md5 = "36b20c427975760cb9cf4a47e41369e4";
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 2; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0x87, 0x88));
    state.lives = memory(0xA3);
    state.terminal = state.lives == 0 && memory(0x8F) == 0x03 && memory(0x8B) == 0x1F;
  }
};

}  // namespace cule::games
