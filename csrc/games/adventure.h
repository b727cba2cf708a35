// Adventure (Atari 1980). One point for bringing the chalice into the yellow castle, which ends the
// game, as does being eaten by a dragon. There are no lives: always 1.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Adventure : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "adventure";
    game.md5 = "4b27f5397c442d25f0c418ccdacf1926";
    game.modes = {0, 1, 2};
    game.difficulties = {0, 1, 2, 3};
    game.draws_for_mode = true;
    return game;
  }

  // The point is kept until the next episode.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const bool won = memory(0xB9) == 0x12;
    const bool eaten = memory(0xE0) == 2;
    if (won) state.reward = 1;
    state.terminal = won || eaten;
  }

  CULE_HD static int lives(const GameState&) { return 1; }

  // How long SELECT is held seeds the placement of the objects in the third mode.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    while (((console.ram(0xDD) >> 1) & 0x03) != mode && !console.gives_up()) {
      console.press_select(static_cast<int>(2 + console.random() % 256));
      console.act(kNoop);
    }
    console.soft_reset();
  }
};

}  // namespace cule::games
