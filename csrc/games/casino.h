// Casino (Atari 1979). The score is the chips held, or the points of Poker Solitaire. A card game
// ends when the player has no chips, or has broken the bank; Poker Solitaire ends when all hands
// have been counted.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Casino : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "casino";
    game.md5 = "b816296311019ab69a21cb9e9e235d12";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kDown);
    game.starting_actions = {kFire, kFire};
    game.modes = {0, 2, 3};
    game.difficulties = {0, 1, 2, 3};
    game.left = Controller::kPaddles;
    game.starting_noops = 60;
    return game;
  }

  static constexpr int kPokerSolitaire = 3;

  // At the end of a card game the cartridge hands out chips for the next one while it locks the
  // controls: a change of the score then brings no reward, but the last reward is not cleared
  // either.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int score = bcd_score(memory, 0x8C, 0x95);
    const int change = score - state.score;
    if (memory(0xD4) == kPokerSolitaire) {
      const bool counted = memory(0x9E) == 0xAA;
      state.reward = change;
      state.terminal = score > 0 && counted;
    } else {
      const bool locked = (memory(0xD3) & 0x80) != 0;
      const bool has_bet = memory(0x9E) != 0;
      if (!locked) state.reward = change;
      state.terminal = score == 0 || (has_bet && locked);
    }
    state.score = score;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0xD4) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
