// Superman (Atari 1979). The only score is the clock: entering the Daily Planet as Clark Kent ends
// the game and pays the seconds that are left of 99:59.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Superman : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "superman";
    game.md5 = "a9531c763077464307086ec9a1fd057d";
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int seconds = 60 * bcd(memory(0xE3)) + bcd(memory(0xE2));
    const int room = memory(0x80) | memory(0x81) << 8;
    const bool is_clark_kent = (memory(0x9F) & 0x40) != 0;
    state.terminal = is_clark_kent && room == 0xF2AC;
    state.reward = state.terminal ? 99 * 60 + 59 - seconds : 0;
  }
};

}  // namespace cule::games
