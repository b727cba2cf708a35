// Up 'n Down (Sega 1984). Six score digits; over when the last car's crash has been shown for a
// while.
#pragma once

#include "games/game.h"

namespace cule::games {

struct UpNDown : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "up_n_down";
    game.md5 = "a499d720e7ee35c62424de882a3351b6";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kDown, kUpFire, kDownFire);
    game.starting_actions = {kFire};
    game.difficulties = {0, 1, 2, 3};
    game.y_start = 30;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x80, 0x81, 0x82));
    const int spare_cars = memory(0x86) & 0x0F;
    const int crash_timer = memory(0x94);
    state.terminal = spare_cars == 0 && crash_timer > 0x40;
    state.lives = spare_cars + 1;
  }
};

}  // namespace cule::games
