// Road Runner (Atari 1989). Four score digits in a byte each, in hundreds, where 10 is a blank.
// Ends when the last bird is caught, which its motion shows.
#pragma once

#include "games/game.h"

namespace cule::games {

struct RoadRunner : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "road_runner";
    game.md5 = "ce5cc62608be2cd3ed8abd844efb8919";
    return game;
  }

  CULE_HD static int digit(int byte) { return (byte & 0x0F) == 10 ? 0 : byte & 0x0F; }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int score = 0;
    for (int address = 0xCC; address >= 0xC9; --address)
      score = score * 10 + digit(memory(address));
    reward_score_change(state, 100 * score);
    const int spare_lives = memory(0xC4) & 7;
    const bool falls = memory(0xB9) != 0 || memory(0xBD) != 0;
    state.terminal = spare_lives == 0 && falls;
    state.lives = spare_lives + 1;
  }
};

}  // namespace cule::games
