// Atlantis (Imagic 1982). A six-digit score in units of a hundred; over when the last installation
// has fallen. The score is overwritten on that frame, so the score of the frame before counts.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Atlantis : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "atlantis";
    game.md5 = "9ad36e699ef6f45d9eb6c4cf90475c9f";
    game.minimal_actions = action_set(kNoop, kFire, kRightFire, kLeftFire);
    game.modes = game.modes.range(0, 4);
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 6; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    state.lives = memory(0xF1);
    state.terminal = state.lives == 0xFF;
    const int score = 100 * bcd_score(memory, 0xA1, 0xA3, 0xA2);
    reward_score_change(state, state.terminal ? state.score : score);
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x8D) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
