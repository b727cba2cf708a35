// Surround (Atari 1977). Against the computer; the first to ten points wins.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Surround : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "surround";
    game.md5 = "4d7517ae69f95cfbc053be01312b7dba";
    game.minimal_actions = action_set(kNoop, kUp, kRight, kLeft, kDown);
    game.modes = {0, 2};
    game.difficulties = {0, 1, 2, 3};
    game.swap_ports = true;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int computer = bcd(memory(0xF6));
    const int player = bcd(memory(0xF7));
    reward_score_change(state, player - computer);
    state.terminal = computer == 10 || player == 10;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xF9) == mode + 1; });
    console.soft_reset();
  }
};

// Two players.
struct SurroundOfTwo : GameOfTwo {
  static constexpr GameInfo info() {
    GameInfo game = Surround::info();
    game.num_players = 2;
    game.modes = {1, 5, 6, 7, 8, 9, 10, 11, 12};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    Surround::step(memory, state);
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xF9) == mode - 1; });
    console.soft_reset();
  }
};

}  // namespace cule::games
