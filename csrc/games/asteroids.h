// Asteroids (Atari 1981). Four score digits in units of ten, which may roll over; over with the
// last ship.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Asteroids : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "asteroids";
    game.md5 = "ccbd36746ed4525821a8083b0d6d2c2c";
    game.minimal_actions = kAllActions &
                           ~action_set(kDownRight, kDownLeft, kDownRightFire, kDownLeftFire);
    game.modes = game.modes.range(0, 33);
    game.modes.values[32] = 0x80;  // for children
    game.difficulties = {0, 3};
    game.hmove_blanks = false;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 10 * bcd_score(memory, 0xBD, 0xBE));
    if (state.reward < 0) state.reward += 100000;
    state.lives = memory(0xBC) >> 4;
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
