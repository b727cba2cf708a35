// Mr. Do! (CBS Electronics 1983). The score counts in tens; a state byte says that the game is
// over.
#pragma once

#include "games/game.h"

namespace cule::games {

struct MrDo : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "mr_do";
    game.md5 = "aa7bb54d2c189a31bb1fa20099e42859";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kDown,
                                      kUpFire, kRightFire, kLeftFire, kDownFire);
    game.starting_actions = {kFire};
    game.modes = game.modes.range(0, 4);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 4; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 10 * bcd_score(memory, 0x83, 0x82));
    state.lives = memory(0xDB);
    state.terminal = memory(0xDA) == 0x40;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(5, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
