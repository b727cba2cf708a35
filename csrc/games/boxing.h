// Boxing (Activision 1980). Punches landed minus punches taken; over at 100 of either, shown as KO,
// or when the clock runs out. There are no lives: always 0.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Boxing : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "boxing";
    game.md5 = "c3ef5c4653212088eda54dc91d787870";
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  static CULE_INLINE int punches(int byte) { return byte == 0xC0 ? 100 : bcd(byte); }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int player = punches(memory(0x92));
    const int computer = punches(memory(0x93));
    reward_score_change(state, player - computer);
    const bool knockout = player == 100 || computer == 100;
    const bool out_of_time = memory(0x90) >> 4 == 0 && memory(0x91) == 0;
    state.terminal = knockout || out_of_time;
  }

  CULE_HD static int lives(const GameState&) { return 0; }
};

// Two players.
struct BoxingOfTwo : GameOfTwo {
  static constexpr GameInfo info() {
    GameInfo game = Boxing::info();
    game.num_players = 2;
    game.modes = {2};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    Boxing::step(memory, state);
  }

  // Before the start, the number of the variant is in place of the score.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0x92) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
