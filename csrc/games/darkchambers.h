// Dark Chambers (Atari 1989). Four score digits in units of ten; over when no health is left, when
// the level falls back, or when the score rolls over.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Darkchambers : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "darkchambers";
    game.md5 = "106855474c69d08c8ffa308d47337269";
    game.hmove_blanks = false;
    game.starting_noops = 486;
    return game;
  }

  static constexpr int kLevel = 0;

  CULE_HD static void reset(GameState& state) { state.aux[kLevel] = 0; }

  // Once over, it stays over. A frame on which the level falls back does not score.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    state.reward = 0;
    const int level = memory(0xD5);
    if (level < state.aux[kLevel]) {
      state.terminal = true;
      return;
    }
    state.aux[kLevel] = level;
    const int score = 10 * bcd_score(memory, 0xCF, 0xCC);
    const int health = memory(0xCA) & 0x1F;
    const bool rolled_over = score < state.score;
    if (!rolled_over) reward_score_change(state, score);
    if (rolled_over || health == 0) state.terminal = true;
  }
};

}  // namespace cule::games
