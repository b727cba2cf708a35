// Human Cannonball (Atari 1979). One point per hit; seven hits or seven misses end the game.
#pragma once

#include "games/game.h"

namespace cule::games {

struct HumanCannonball : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "human_cannonball";
    game.md5 = "7972e5101fa548b952d852db24ad6060";
    game.modes = game.modes.range(0, 8);
    game.difficulties = {0, 1};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int hits = bcd(memory(0xB6));
    const int misses = bcd(memory(0xB7));
    reward_score_change(state, hits);
    state.terminal = hits == 7 || misses == 7;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    // While SELECT is in use the two counters show the game, from 1, and the number of players.
    console.select_until(2,
                         [&] { return console.ram(0xB6) == mode + 1 && console.ram(0xB7) == 1; });
    console.soft_reset();
  }
};

}  // namespace cule::games
