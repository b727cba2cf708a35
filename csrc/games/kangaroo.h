// Kangaroo (Atari 1983). The score counts in hundreds; over when the count of lives in reserve
// falls below zero.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Kangaroo : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "kangaroo";
    game.md5 = "4326edb70ff20d0ee5ba58fa5cb09d60";
    game.modes = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0xA7, 0xA8));
    const int reserve = memory(0xAD);
    state.terminal = reserve == 0xFF;
    state.lives = (reserve & 7) + 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] {
      const int shown = console.ram(0xBA);
      return shown == mode || shown == mode + 0x80;  // the second on the title screen
    });
    console.soft_reset();
  }
};

}  // namespace cule::games
