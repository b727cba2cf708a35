// Pong (Video Olympics, Atari 1978). Against the computer; the first to 21 points wins.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Pong : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "pong";
    game.md5 = "60e0ea3cbe0913d39803477945e9e5ec";
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    game.modes = {0, 1};
    game.difficulties = {0, 1, 2, 3};
    game.left = game.right = Controller::kPaddles;
    game.swap_paddles = true;
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int computer = memory(0x8D);
    const int player = memory(0x8E);
    reward_score_change(state, player - computer);
    state.terminal = computer == 21 || player == 21;
  }

  CULE_HD static int lives(const GameState&) { return 0; }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x96) == mode; });
    console.soft_reset();
  }
};

// Two players, and four in two teams. Whoever does not serve for two seconds loses a point, which
// the other side does not get.
template <int kPlayers>
struct PongOfSeveral : GameOfTwoRewards {
  static constexpr int kNoServe = 0;  // aux: frames in a row in which the ball waits for its serve
  static constexpr int kMostNoServe = 120;

  static constexpr GameInfo info() {
    GameInfo game = Pong::info();
    game.num_players = kPlayers;
    if (kPlayers == 2) {
      game.modes = {3,  4,  9,  10, 13, 14, 19, 20, 23, 24, 25,
                    26, 27, 28, 35, 36, 39, 40, 43, 44, 45, 46};
    } else {
      game.modes = {5,  6,  7,  8,  11, 12, 15, 16, 17, 18, 21, 22, 29,
                    30, 31, 32, 33, 34, 37, 38, 41, 42, 47, 48, 49, 50};
    }
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    state.aux[kNoServe] = state.aux[kSecondReward] = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    Pong::step(memory, state);
    state.aux[kSecondReward] = -state.reward;
    const bool waits = (memory(0x8C) & 0xF0) == 0;  // the ball's motion
    state.aux[kNoServe] = waits ? state.aux[kNoServe] + 1 : 0;
    if (state.aux[kNoServe] < kMostNoServe) return;
    state.aux[kNoServe] = 0;
    const bool second_serves = memory(0x92) == 0;
    --(second_serves ? state.aux[kSecondReward] : state.reward);
  }

  // The third player is on the first's side.
  CULE_HD static int other_reward(const GameState& state, int player) {
    return player == 2 ? state.reward : state.aux[kSecondReward];
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    Pong::set_mode(console, mode - 1);
  }
};
using PongOfTwo = PongOfSeveral<2>;
using PongOfFour = PongOfSeveral<4>;

}  // namespace cule::games
