// Flag Capture (Atari 1978). One point per flag, against a clock of 75 seconds.
#pragma once

#include "games/game.h"

namespace cule::games {

struct FlagCapture : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "flag_capture";
    game.md5 = "30512e0e83903fc05541d2f6a6a62654";
    game.modes = {8, 9, 10};  // the solo games
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0xEA)));
    state.terminal = bcd(memory(0xEB)) == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xD6) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
