// Entombed (US Games 1982). The score is a plain byte; over with the last life.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Entombed : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "entombed";
    game.md5 = "6b683be69f92958abe0e2a9945157ad5";
    game.starting_actions = {kFire, kNoop, kNoop, kNoop, kNoop, kNoop};
    game.difficulties = {0, 2};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, memory(0xE3));
    state.terminal = (memory(0xC7) & 0x03) == 0;
  }
};

// Two players with lives of their own; over when either has none. In mode 2 they play against each
// other for lives; in mode 3 both are rewarded for each stage that they reach.
struct EntombedOfTwo : GameOfTwo {
  static constexpr int kStage = 0, kCooperative = 1, kSecondLives = 2;  // aux

  static constexpr GameInfo info() {
    GameInfo game = Entombed::info();
    game.num_players = 2;
    game.modes = {2, 3};
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    state.lives = state.aux[kSecondLives] = state.aux[kStage] = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    state.lives = memory(0xC7) & 0x03;
    state.aux[kSecondLives] = memory(0xC7) >> 4 & 0x03;
    state.terminal = state.lives == 0 || state.aux[kSecondLives] == 0;
    if (!state.aux[kCooperative]) {
      reward_score_change(state, state.lives - state.aux[kSecondLives]);
      return;
    }
    const int stage = memory(0xEF);
    state.reward = stage > state.aux[kStage];
    state.aux[kStage] = stage;
  }

  CULE_HD static int lives(const GameState& state) { return state.lives; }
  CULE_HD static int other_lives(const GameState& state, int) { return state.aux[kSecondLives]; }
  CULE_HD static int other_reward(const GameState& state, int) {
    return state.aux[kCooperative] ? state.reward : -state.reward;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.game.aux[kCooperative] = mode == 3;
    console.select_until(1, [&] { return console.ram(0xF4) == 0; });
    console.soft_reset();
  }
};

}  // namespace cule::games
