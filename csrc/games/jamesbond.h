// James Bond 007 (Parker Brothers 1984). Six digits of score; over when the death screen shows and
// no life is in reserve. That screen goes away again, so the end is visible only for a while.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Jamesbond : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "jamesbond";
    game.md5 = "e51030251e440cffaab1ac63438b44ae";
    game.modes = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 6; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xDE, 0xDD, 0xDC));
    const int reserve = memory(0x86) & 0x0F;
    state.terminal = reserve == 0 && memory(0x8C) == 0x68;
    state.lives = reserve + 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(20, [&] {
      const int shown = console.ram(0x8C);
      return shown == mode || shown == mode + 0x48;  // the second on the title screen
    });
    console.soft_reset();
  }
};

}  // namespace cule::games
