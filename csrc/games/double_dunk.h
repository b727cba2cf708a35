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
    set_entries(console, mode);
    console.soft_reset();
    tap(console, kUpFire);
  }

  template <class Console>
  CULE_HD static void set_entries(Console& console, int mode) {
    next_entry(console);
    next_entry(console);
    switch_entry(console, 0x08, (mode & 1) != 0);
    next_entry(console);
    switch_entry(console, 0x10, (mode & 2) != 0);
    next_entry(console);
    switch_entry(console, 0x04, (mode & 4) != 0);
    next_entry(console);
    switch_entry(console, 0x20, (mode & 8) != 0);
  }
};

// Two players. Whoever does not choose a play for two seconds loses a point, which the other does
// not get; both, if neither has chosen.
struct DoubleDunkOfTwo : GameOfTwoRewards {
  static constexpr int kChoiceFrames = 0;  // aux: frames since the last choice
  static constexpr int kMostChoiceFrames = 120;

  static constexpr GameInfo info() {
    GameInfo game = DoubleDunk::info();
    game.num_players = 2;
    game.modes = game.modes.range(16, 16);
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    state.aux[kChoiceFrames] = state.aux[kSecondReward] = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    DoubleDunk::step(memory, state);
    state.aux[kSecondReward] = -state.reward;
    const int missing = memory(0x89);  // bit 6: the second player's choice, bit 7: the first's
    const bool both = missing == 0, first = (missing & 0x80) != 0, second = (missing & 0x40) != 0;
    if (!both && !first && !second) state.aux[kChoiceFrames] = 0;
    if (++state.aux[kChoiceFrames] <= kMostChoiceFrames) return;
    state.aux[kChoiceFrames] = 0;
    state.reward = both || (first && !second) ? -1 : 0;
    state.aux[kSecondReward] = both || second ? -1 : 0;
  }

  // The menu's first entry is the number of players; the rest is as for one.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.press_select(1);
    DoubleDunk::switch_entry(console, 0x40, true);
    DoubleDunk::set_entries(console, mode);
    console.soft_reset();
  }
};

}  // namespace cule::games
