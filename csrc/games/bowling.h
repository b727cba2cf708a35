// Bowling (Atari 1979). A three-digit score; over after the tenth frame. There are no lives: always
// 0.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Bowling : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "bowling";
    game.md5 = "c9b7afad3bfd922e006a6bfc1d4f3fe7";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kDown, kUpFire, kDownFire);
    game.modes = {0, 2, 4};
    game.difficulties = {0, 1};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xA6, 0xA1));
    state.terminal = memory(0xA4) > 0x10;
  }

  CULE_HD static int lives(const GameState&) { return 0; }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x82) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
