// Joust (Atari 1982). Two players with scores and lives of their own; -1 when they have lost the
// last. Over when both have, or at 990,000 points.
#pragma once

#include "games/game.h"

namespace cule::games {

struct JoustOfTwo : GameOfTwoScores {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "joust";
    game.md5 = "3276c777cbe97cdd2b4a63ffc16b7151";
    game.num_players = 2;
    game.modes = {1, 3};
    return game;
  }

  CULE_HD static void reset(GameState& state) { start(state, 5); }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int second = bcd_score(memory, 0x84, 0x86, 0x88);
    reward_score_change(state, bcd_score(memory, 0x83, 0x85, 0x87));
    reward_second_score(state, second);
    state.lives = static_cast<int8_t>(memory(0x81));
    state.aux[kSecondLives] = static_cast<int8_t>(memory(0x82));
    state.terminal = state.score >= 990000 || second >= 990000 ||
                     (state.lives == -1 && state.aux[kSecondLives] == -1);
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0xF8) % 4 == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
