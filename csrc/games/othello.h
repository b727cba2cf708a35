// Othello (Atari 1981). The score is White's (the player's) counters less Black's; over once it has
// been nobody's turn for more than 50 frames. Flipping the counters does not take that long.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Othello : Game {
  static constexpr int kIdleFrames = 0;  // in a row, without anyone to move

  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "othello";
    game.md5 = "113cd09c9771ac278544b7e90efe7df2";
    game.minimal_actions = action_set(kNoop, kFire) | kEightWays;
    game.modes = {0, 1, 2};
    game.difficulties = {0, 2};
    game.frames_cut_off = true;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.aux[kIdleFrames] = 0; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd(memory(0xCE)) - bcd(memory(0xD0)));
    state.aux[kIdleFrames] = memory(0xC0) == 0 ? state.aux[kIdleFrames] + 1 : 0;
    state.terminal = state.aux[kIdleFrames] > 50;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xDE) == mode + 1; });
    console.soft_reset();
  }
};

// Two players; the first has the white pieces. Whoever has not moved for ten seconds loses a point,
// which the other does not get.
struct OthelloOfTwo : GameOfTwoRewards {
  static constexpr int kIdleFrames = 0;  // aux: in a row, without anyone to move
  static constexpr int kTurnFrames = 1;  // aux: since the score has changed
  static constexpr int kMostIdleFrames = 75, kMostTurnFrames = 600;

  static constexpr GameInfo info() {
    GameInfo game = Othello::info();
    game.num_players = 2;
    game.modes = {4};
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    for (int32_t& number : state.aux) number = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int to_move = memory(0xC0);
    reward_score_change(state, bcd(memory(0xCE)) - bcd(memory(0xD0)));
    state.aux[kSecondReward] = -state.reward;
    state.aux[kIdleFrames] = to_move == 0 ? state.aux[kIdleFrames] + 1 : 0;
    state.terminal = state.aux[kIdleFrames] > kMostIdleFrames;
    if (state.reward != 0) state.aux[kTurnFrames] = 0;
    if (++state.aux[kTurnFrames] < kMostTurnFrames) return;
    state.aux[kTurnFrames] = 0;
    (to_move == 0xFF ? state.reward : state.aux[kSecondReward]) = -1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    Othello::set_mode(console, mode - 1);
  }
};

}  // namespace cule::games
