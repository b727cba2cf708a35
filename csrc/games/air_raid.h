// Air Raid (Men-A-Vision 1982). A six-digit score; over when the count of spare buildings runs
// below zero.
#pragma once

#include "games/game.h"

namespace cule::games {

struct AirRaid : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "air_raid";
    game.md5 = "35be55426c1fec32dfb503b4f0651572";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.starting_actions = {kFire};
    game.modes = game.modes.range(1, 8);
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xA8, 0xA9, 0xAA));
    state.terminal = memory(0xA7) == 0xFF;
  }

  // The first SELECT opens the menu; while it is open, the low score byte shows the mode.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.press_select(20);
    console.select_until(10, [&] { return console.ram(0xAA) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
