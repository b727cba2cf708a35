// Space War (Atari 1978). Over when the left ship has ten points, or the clock has run out.
#pragma once

#include "games/game.h"

namespace cule::games {

struct SpaceWar : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "space_war";
    game.md5 = "b702641d698c60bcdc922dbd8c9dd49c";
    game.modes = game.modes.range(6, 12);
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0xA7)));
    state.terminal = state.score == 10 || memory(0x80) == 0;
  }

  // Before the start, the number of the variant is in place of the score.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return bcd(console.ram(0xA7)) == mode; });
    console.soft_reset();
  }
};

// Two players: the left ship's points less the right one's. Over when either has ten.
struct SpaceWarOfTwo : GameOfTwo {
  static constexpr GameInfo info() {
    GameInfo game = SpaceWar::info();
    game.num_players = 2;
    game.modes = game.modes.range(1, 5);
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int left = bcd(memory(0xA7));
    const int right = bcd(memory(0xA8));
    reward_score_change(state, left - right);
    state.terminal = left == 10 || right == 10 || memory(0x80) == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    SpaceWar::set_mode(console, mode);
  }
};

}  // namespace cule::games
