// Amidar (Parker Brothers 1982). A six-digit score; over when the byte that holds the lives is $80.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Amidar : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "amidar";
    game.md5 = "acb7750b4d0c4bd34969802a7deb2990";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kDown) |
                           action_set(kUpFire, kRightFire, kLeftFire, kDownFire);
    game.difficulties = {0, 3};
    game.power_on_difficulty = 3;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xDB, 0xDA, 0xD9));
    const int lives = memory(0xD6);
    state.terminal = lives == 0x80;
    state.lives = lives & 0x0F;
  }
};

}  // namespace cule::games
