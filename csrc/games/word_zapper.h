// Word Zapper (US Games 1982). The score is the number of words spelled. Three words end the game,
// and so does the clock. While the clock is at zero, nothing is read, and the last reward repeats.
#pragma once

#include "games/game.h"

namespace cule::games {

struct WordZapper : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "word_zapper";
    game.md5 = "ec3beb6d8b5689e867bafb5d5f507491";
    game.starting_noops = 486;
    game.starting_actions = {kFire, kNoop, kNoop};
    game.modes = game.modes.range(0, 24);
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    if (bcd(memory(0xCF)) == 0) return;
    const int words_left = static_cast<int8_t>(memory(0xDC)) + 1;
    reward_score_change(state, 3 - words_left);
    state.terminal = words_left == 0 || bcd(memory(0xDE)) == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xDB) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
