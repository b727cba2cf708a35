// Ms. Pac-Man (Atari 1982). Six digits of score; over when the last life is lost, at one moment of
// the death animation.
#pragma once

#include "games/game.h"

namespace cule::games {

struct MsPacman : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "ms_pacman";
    game.md5 = "87e79cd41ce136fd4f72cc6e2c161bee";
    game.minimal_actions = action_set(kNoop) | kEightWays;
    game.modes = game.modes.range(0, 4);
    game.hmove_blanks = false;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xFA, 0xF9, 0xF8));
    const int reserve = memory(0xFB) & 0x0F;
    state.terminal = reserve == 0 && memory(0xA7) == 0x53;
    state.lives = (reserve & 7) + 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    // Mode 0 is the regular game; the others are numbered variations.
    const int number = mode == 0 ? 1 : mode;
    const int regular = mode == 0 ? 1 : 0;
    console.select_until(
        10, [&] { return console.ram(0x99) == number && console.ram(0xA1) == regular; });
    console.soft_reset();
  }
};

}  // namespace cule::games
