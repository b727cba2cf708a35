// Video Pinball (Atari 1981). Six score digits; a flag says that it is over. The lives follow from
// the balls played and the extra ball.
#pragma once

#include "games/game.h"

namespace cule::games {

struct VideoPinball : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "video_pinball";
    game.md5 = "107cc025334211e6d29da0b6be46aec7";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kDown, kUpFire, kRightFire,
                                      kLeftFire);
    game.modes = {0, 2};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xB4, 0xB2, 0xB0));
    state.terminal = (memory(0xAF) & 1) != 0;
    const int balls_played = memory(0x99) & 7;
    const int extra_ball = memory(0xA8) & 1;
    state.lives = 4 + extra_ball - balls_played;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xC1) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
