// Tutankham (Parker Brothers 1983). Four score digits; over when no life is left and the last death
// has been shown.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Tutankham : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "tutankham";
    game.md5 = "085322bae40d904f53bdcc56df0593fc";
    game.minimal_actions = action_set(kNoop, kUp, kRight, kLeft, kDown, kUpFire, kRightFire,
                                      kLeftFire);
    game.modes = {0, 4, 8, 12};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x9A, 0x9C));
    const int lives_byte = memory(0x9E);
    state.terminal = lives_byte == 0 && memory(0x81) != 0x84;
    state.lives = lives_byte & 3;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xAB) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
