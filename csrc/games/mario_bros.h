// Mario Bros. (Atari 1983). The score counts in hundreds; over when no life is left.
#pragma once

#include "games/game.h"

namespace cule::games {

struct MarioBros : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "mario_bros";
    game.md5 = "e908611d99890733be31733a979c62d8";
    // FIRE starts the game, but only after a while, and only when held.
    game.starting_actions.count = 17;
    for (int i = 0; i < 17; ++i) game.starting_actions.values[i] = i < 10 ? kNoop : kFire;
    game.modes = {0, 2, 4, 6};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 0; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0x89, 0x8A));
    state.lives = memory(0x87);
    state.terminal = state.lives == 0;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(5, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

// Two players with scores and lives of their own; -1 when they have lost the last.
struct MarioBrosOfTwo : GameOfTwoScores {
  static constexpr GameInfo info() {
    GameInfo game = MarioBros::info();
    game.num_players = 2;
    game.modes = {2, 4, 6, 8};
    return game;
  }

  CULE_HD static void reset(GameState& state) { start(state, 5); }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, 100 * bcd_score(memory, 0x89, 0x8A));
    reward_second_score(state, 100 * bcd_score(memory, 0x8B, 0x8C));
    state.lives = memory(0x87) - 1;
    state.aux[kSecondLives] = memory(0x88) - 1;
    state.terminal = state.lives == -1 && state.aux[kSecondLives] == -1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    MarioBros::set_mode(console, mode - 1);
  }
};

}  // namespace cule::games
