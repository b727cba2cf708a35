// Fishing Derby (Activision 1980). The score is the player's catch less the opponent's, in pounds;
// the first to 99 ends the game.
#pragma once

#include "games/game.h"

namespace cule::games {

struct FishingDerby : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "fishing_derby";
    game.md5 = "b8865f05676e64f3bec72b9defdacfa7";
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int player = memory(0xBD);
    const int opponent = memory(0xBE);
    reward_score_change(state, bcd(player) - bcd(opponent));
    state.terminal = player == 0x99 || opponent == 0x99;
  }

  CULE_HD static int lives(const GameState&) { return 0; }
};

// Two players.
struct FishingDerbyOfTwo : GameOfTwo {
  static constexpr GameInfo info() {
    GameInfo game = FishingDerby::info();
    game.num_players = 2;
    game.modes = {2};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    FishingDerby::step(memory, state);
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0x80) == mode - 1; });
    console.soft_reset();
  }
};

}  // namespace cule::games
