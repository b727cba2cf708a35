// Wizard of Wor (CBS Electronics 1982). Three digits, in hundreds; the top digit also has a flag.
// Over when no life is left and the game-over state has come. The lives are only read while the
// worrior waits to enter.
#pragma once

#include "games/game.h"

namespace cule::games {

struct WizardOfWor : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "wizard_of_wor";
    game.md5 = "7e8aa18bc9502eb57daaf5e7c1e94da7";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kDown, kUpFire, kRightFire,
                                      kLeftFire, kDownFire);
    game.difficulties = {0, 1};
    game.swap_ports = true;
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int score = bcd_score(memory, 0x88, 0x86);
    if (score >= 8000) score -= 8000;
    reward_score_change(state, 100 * score);
    const int worriors = memory(0x8D) & 0x0F;
    state.terminal = worriors == 0 && memory(0xF4) == 0xF8;
    const bool waits = (memory(0xD7) & 1) == 0;
    if (waits) state.lives = worriors;
  }
};

// Two players with scores and lives of their own; -1 when they have lost the last.
struct WizardOfWorOfTwo : GameOfTwoScores {
  static constexpr GameInfo info() {
    GameInfo game = WizardOfWor::info();
    game.num_players = 2;
    game.minimal_actions = game.minimal_actions & ~action_set(kNoop);
    game.modes = {1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { start(state, 2); }

  static CULE_INLINE int points(int score) { return 100 * (score >= 8000 ? score - 8000 : score); }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, points(bcd_score(memory, 0x88, 0x86)));
    reward_second_score(state, points(bcd_score(memory, 0x87, 0x85)));
    const int first = (memory(0x8D) & 0x0F) - 1;
    const int second = (memory(0x8C) & 0x0F) - 1;
    state.terminal = first == -1 && memory(0xF4) == 0xF8 && second == -1;
    if ((memory(0xD7) & 1) == 0) state.lives = first;
    if ((memory(0xD6) & 1) == 0) state.aux[kSecondLives] = second;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return bcd(console.ram(0x81)) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
