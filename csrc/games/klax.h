// Klax (Atari 1990). Six digits of score, in the cartridge's own RAM; over when too many tiles were
// missed, when the 25 places of the well are full, or at level 99.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Klax : Game {
  // A place holds 0 when empty, and 2, 6, 10 or 14 while a finished level pays its bonus for it.
  template <class Memory>
  CULE_HD static bool well_is_full(const Memory& memory) {
    for (int place = 0; place < 25; ++place) {
      const int tile = memory(0xB3 + place);
      if (tile == 0 || (tile & 0xF3) == 2) return false;
    }
    return true;
  }

  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "klax";
    game.md5 = "eed9eaf1a0b6a2b9bc4c8032cb43e3fb";
    game.starting_actions = {kFire, kNoop};
    game.modes = {0, 1, 2};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 10000 * bcd(memory.cart_ram(0x36)) +
                                   100 * bcd(memory.cart_ram(0x35)) + bcd(memory.cart_ram(0x34)));
    const int missed = memory.cart_ram(0x6E);
    const int allowed = memory.cart_ram(0x69);
    const bool dropped_out = allowed > 0 && missed == allowed;
    const bool playing = memory(0xA8) == 4;
    const bool finished = memory.cart_ram(0x1D) == 0x99;
    state.terminal = dropped_out || (playing && well_is_full(memory)) || finished;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.cart_ram(0x6A) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
