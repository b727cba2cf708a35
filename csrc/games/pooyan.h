// Pooyan (Konami 1983). Ends when the last life is lost; a second byte tells that from a last life
// still in play.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Pooyan : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "pooyan";
    game.md5 = "4799a40b6e889370b7ee55c17ba65141";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kDown, kUpFire, kDownFire);
    game.modes = {10, 30, 50, 70};
    game.y_start = 26;
    game.height = 220;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x88, 0x89, 0x8A));
    const int spare_lives = memory(0x96);
    state.terminal = spare_lives == 0 && memory(0x98) == 5;
    state.lives = (spare_lives & 7) + 1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.press_select(2);
    console.select_until(2, [&] { return console.ram(0xBD) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
