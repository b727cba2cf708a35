// Haunted House (Atari 1982). Each match struck costs a point; carrying the urn out of the house
// earns 100 and ends the game, as does the loss of the last life.
#pragma once

#include "games/game.h"

namespace cule::games {

struct HauntedHouse : GameWithLives {
  static constexpr int kMatches = 0;  // struck so far, modulo 100

  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "haunted_house";
    game.md5 = "f0a6e99f5875891246c3dbecbf2d2cea";
    game.modes = game.modes.range(0, 9);
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    state.aux[kMatches] = 0;
    state.lives = 9;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int matches = bcd(memory(0x82));
    const bool escaped = memory(0x99) == 0x44;
    state.reward = (matches != state.aux[kMatches] ? -1 : 0) + (escaped ? 100 : 0);
    state.aux[kMatches] = matches;
    state.lives = memory(0x96);
    state.terminal = state.lives == 0 || escaped;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xCC) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
