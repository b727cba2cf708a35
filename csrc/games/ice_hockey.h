// Ice Hockey (Activision 1981). The score is the player's goals less the opponent's, and no frame
// earns more than one; the game ends with the clock.
#pragma once

#include "games/game.h"

namespace cule::games {

struct IceHockey : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "ice_hockey";
    game.md5 = "a4c08c4994eb9d24fb78be1793e82e26";
    game.modes = {0, 2};
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0x8A)) - bcd(memory(0x8B)));
    if (state.reward > 1) state.reward = 1;
    const int minutes = memory(0x87);
    const int seconds = memory(0x86);
    state.terminal = minutes == 0 && seconds == 0;
  }

  CULE_HD static int lives(const GameState&) { return 0; }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

// Two players. Here a goal counts as it is.
struct IceHockeyOfTwo : GameOfTwo {
  static constexpr GameInfo info() {
    GameInfo game = IceHockey::info();
    game.num_players = 2;
    game.modes = {1, 3};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0x8A)) - bcd(memory(0x8B)));
    state.terminal = memory(0x87) == 0 && memory(0x86) == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    IceHockey::set_mode(console, mode);
  }
};

}  // namespace cule::games
