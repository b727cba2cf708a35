// Maze Craze (Atari 1978). For two only. The first to leave the maze gets a point and the other
// loses one; a player who is caught loses one, is out (-1 lives), and neither loses nor gets any
// more for the maze. Over with the maze, or when both are out.
#pragma once

#include "games/game.h"

namespace cule::games {

struct MazeCrazeOfTwo : GameOfTwoRewards {
  static constexpr int kFirstLives = 0, kSecondLives = 1;  // aux

  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "maze_craze";
    game.md5 = "ed2218b3075d15eaa34e3356025ccca3";
    game.num_players = 2;
    game.modes = game.modes.range(0, 64);
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    for (int32_t& number : state.aux) number = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int32_t& first_lives = state.aux[kFirstLives];
    int32_t& second_lives = state.aux[kSecondLives];
    const bool first_caught = (memory(0xEA) & 0x40) != 0 && first_lives == 0;
    const bool second_caught = (memory(0xEB) & 0x40) != 0 && second_lives == 0;
    first_lives -= first_caught;
    second_lives -= second_caught;
    state.reward = first_caught ? -1 : 0;
    state.aux[kSecondReward] = second_caught ? -1 : 0;
    const int lead = (memory(0xEC) == 0xFF) - (memory(0xED) == 0xFF);
    state.terminal = lead != 0 || (first_lives < 0 && second_lives < 0);
    if (lead == 0) return;
    if (first_lives == 0) state.reward = second_lives < 0 ? 1 : lead;
    if (first_lives < 0) state.aux[kSecondReward] = 1;
    else if (second_lives == 0) state.aux[kSecondReward] = -lead;
  }

  CULE_HD static int lives(const GameState& state) { return state.aux[kFirstLives]; }
  CULE_HD static int other_lives(const GameState& state, int) { return state.aux[kSecondLives]; }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xBD) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
