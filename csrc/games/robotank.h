// Robot Tank (Activision 1983). The score is the number of tanks destroyed, counted in squadrons of
// twelve. Ends with the last of the player's tanks.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Robotank : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "robotank";
    game.md5 = "4f618c2429138e0280969193ed6c107e";
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 12 * memory(0xB6) + memory(0xB5));
    const int spare_tanks = memory(0xA8);
    state.terminal = spare_tanks == 0 && memory(0xB4) == 0xFF;
    state.lives = (spare_tanks & 0x0F) + 1;
  }
};

}  // namespace cule::games
