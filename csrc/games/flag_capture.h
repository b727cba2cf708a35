// Flag Capture (Atari 1978). One point per flag, against a clock of 75 seconds.
#pragma once

#include "games/game.h"

namespace cule::games {

struct FlagCapture : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "flag_capture";
    game.md5 = "30512e0e83903fc05541d2f6a6a62654";
    game.modes = {8, 9, 10};  // the solo games
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0xEA)));
    state.terminal = bcd(memory(0xEB)) == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xD6) == mode; });
    console.soft_reset();
  }
};

// Two players, each with a point per flag, and no clock: over when either has 99.
struct FlagCaptureOfTwo : GameOfTwoRewards {
  static constexpr int kSecondScore = 0;  // aux

  static constexpr GameInfo info() {
    GameInfo game = FlagCapture::info();
    game.num_players = 2;
    game.minimal_actions = action_set(kNoop, kFire) | kEightWays;
    game.starting_actions.count = 10;
    for (int i = 0; i < 10; ++i) game.starting_actions.values[i] = kFire;
    game.modes = {1, 2, 3, 4};
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    state.aux[kSecondScore] = state.aux[kSecondReward] = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int second = bcd(memory(0xEB));
    reward_score_change(state, bcd(memory(0xAB)));
    state.aux[kSecondReward] = second - state.aux[kSecondScore];
    state.aux[kSecondScore] = second;
    state.terminal = state.score == 99 || second == 99;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(10, [&] { return console.ram(0xD6) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
