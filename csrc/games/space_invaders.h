// Space Invaders (Atari 1980). Four score digits that roll over at 10000. Ends when no cannon is
// left or a flag says so.
#pragma once

#include "games/game.h"

namespace cule::games {

struct SpaceInvaders : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "space_invaders";
    game.md5 = "72ffbef6504b75e69ee1045af9075f66";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.modes = game.modes.range(0, 16);
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xE6, 0xE8));
    if (state.reward < 0) state.reward += 10000;
    state.lives = memory(0xC9);
    state.terminal = (memory(0x98) & 0x80) != 0 || state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xDC) == mode; });
    console.soft_reset();
  }
};

// Two players with scores of their own, who share their lives: here the reserve, -1 at the end.
struct SpaceInvadersOfTwo : GameOfTwoScores {
  static constexpr GameInfo info() {
    GameInfo game = SpaceInvaders::info();
    game.num_players = 2;
    game.modes = game.modes.range(33, 32);
    return game;
  }

  CULE_HD static void reset(GameState& state) { start(state, 2); }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0xE6, 0xE8));
    if (state.reward < 0) state.reward += 10000;
    reward_second_score(state, bcd_score(memory, 0xE7, 0xE9));
    if (state.aux[kSecondReward] < 0) state.aux[kSecondReward] += 10000;
    state.lives = state.aux[kSecondLives] = memory(0xC9) - 1;
    state.terminal = (memory(0x98) & 0x80) != 0 || state.lives == -1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    SpaceInvaders::set_mode(console, mode - 1);
  }
};

}  // namespace cule::games
