// Miniature Golf (Atari 1979). Each hole played earns its par less the strokes taken; over after
// the last hole. The left counter shows all strokes so far, modulo 100; between holes the right one
// shows the next hole's par.
#pragma once

#include "games/game.h"

namespace cule::games {

struct MiniatureGolf : Game {
  // `state.score` is the left counter as last seen in play.
  static constexpr int kHole = 0;
  static constexpr int kPar = 1;
  // strokes that the counter lost as it wrapped around during this hole
  static constexpr int kWrapped = 2;
  static constexpr int kStrokesBefore = 3;  // the counter at the start of this hole

  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "miniature_golf";
    game.md5 = "df62a658496ac98a3aa4a6ee5719c251";
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { for (int i = 0; i < 4; ++i) state.aux[i] = 0; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int strokes = bcd(memory(0x87));
    const int par = bcd(memory(0x88));
    const int hole = bcd(memory(0xAF));
    state.reward = 0;
    if (hole != state.aux[kHole]) {
      const int taken = state.score + state.aux[kWrapped] - state.aux[kStrokesBefore];
      if (taken > 0) state.reward = state.aux[kPar] - taken;
      if (hole == 0) state.terminal = true;  // and stays so
      state.aux[kHole] = hole;
      state.aux[kWrapped] = 0;
      state.aux[kStrokesBefore] = state.score;
    }
    if (par != 0) {
      state.aux[kPar] = par;
    } else {
      if (strokes < state.score) state.aux[kWrapped] += state.score;
      state.score = strokes;
    }
  }
};

}  // namespace cule::games
