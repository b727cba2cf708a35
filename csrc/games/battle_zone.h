// Battlezone (Atari 1983). Three score digits in units of a thousand, where 10 is a blank; over
// with the last tank.
#pragma once

#include "games/game.h"

namespace cule::games {

struct BattleZone : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "battle_zone";
    game.md5 = "41f252a66c6301f1e8ab3612c19bc5d4";
    game.modes = {1, 2, 3};
    game.hmove_blanks = false;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 5; }

  static CULE_INLINE int digit(int nibble) { return nibble == 10 ? 0 : nibble; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int high = memory(0x9E);
    const int low = memory(0x9D);
    reward_score_change(
        state, 1000 * (100 * digit(high >> 4) + 10 * digit(high & 0x0F) + digit(low >> 4)));
    state.lives = memory(0xBA) & 0x0F;
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xA1) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
