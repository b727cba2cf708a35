// Double Dunk (Atari 1989). The player's points minus the computer's; over when either has 24 and
// play has stopped. There are no lives: always 0.
#pragma once

#include "games/game.h"

namespace cule::games {

struct DoubleDunk : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "double_dunk";
    game.md5 = "368d88a6c071caba60b4f778615aae94";
    game.starting_actions = {kUpFire};
    game.modes = game.modes.range(0, 16);
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int player = bcd(memory(0xF6));
    const int computer = bcd(memory(0xF7));
    reward_score_change(state, player - computer);
    state.terminal = (player >= 24 || computer >= 24) && memory(0xFE) == 0xE7;
  }

  CULE_HD static int lives(const GameState&) { return 0; }

  template <class Console>
  CULE_HD static void tap(Console& console, Action action) {
    console.act(action);
    console.act(kNoop);
  }

  // Moves the menu's cursor down one entry.
  template <class Console>
  CULE_HD static void next_entry(Console& console) {
    const int entry = console.ram(0xB0);
    while (console.ram(0xB0) == entry && !console.gives_up()) tap(console, kDown);
  }

  // Right switches the entry on, left switches it off; its `bit` of $80 tells which it is.
  template <class Console>
  CULE_HD static void switch_entry(Console& console, int bit, bool on) {
    while (((console.ram(0x80) & bit) != 0) != on && !console.gives_up())
      tap(console, on ? kRight : kLeft);
  }

  // The bits of `mode` are the menu's third to sixth entries: three-point shots, the 10 second
  // rule, the 3 second rule and fouls.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.press_select(1);
    next_entry(console);
    next_entry(console);
    switch_entry(console, 0x08, (mode & 1) != 0);
    next_entry(console);
    switch_entry(console, 0x10, (mode & 2) != 0);
    next_entry(console);
    switch_entry(console, 0x04, (mode & 4) != 0);
    next_entry(console);
    switch_entry(console, 0x20, (mode & 8) != 0);
    console.soft_reset();
    tap(console, kUpFire);
  }
};

}  // namespace cule::games
