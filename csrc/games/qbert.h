// Q*bert (Parker Brothers 1983). Four lives; the game keeps them in a signed byte that counts 2, 1,
// 0, -1, -2, where -2, or a jump from -1 back to 2, is the end. The frame that ends the game brings
// no reward.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Qbert : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "qbert";
    game.md5 = "484b0076816a104875e00467d431c2d2";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kDown);
    game.difficulties = {0, 1};
    game.y_start = 40;
    return game;
  }

  static constexpr int kLastCount = 0;  // aux: the signed byte, a frame ago

  CULE_HD static void reset(GameState& state) {
    state.lives = 4;
    state.aux[kLastCount] = 2;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int count = static_cast<int8_t>(memory(0x88));
    state.terminal = count == -2 || (count == 2 && state.aux[kLastCount] == -1);
    if (count == state.aux[kLastCount] - 1) --state.lives;
    state.aux[kLastCount] = count;
    if (state.terminal) {
      state.reward = 0;
    } else {
      reward_score_change(state, bcd_score(memory, 0xD9, 0xDA, 0xDB));
    }
  }
};

}  // namespace cule::games
