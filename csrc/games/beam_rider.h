// Beamrider (Activision 1984). A six-digit score; over when the count of spare ships runs below
// zero.
#pragma once

#include "games/game.h"

namespace cule::games {

struct BeamRider : GameWithLives {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "beam_rider";
    game.md5 = "79ab4123a83dc11d468fb2108ea09e2e";
    game.minimal_actions = action_set(kNoop, kFire, kUp, kRight, kLeft, kUpRight, kUpLeft,
                                      kRightFire, kLeftFire);
    game.starting_actions = {kRight};
    game.difficulties = {0, 1};
    return game;
  }

  CULE_HD static void reset(GameState& state) { state.lives = 3; }

  // The count flickers while a ship is lost, so a loss counts only once $8C says that the animation
  // is over.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    reward_score_change(state, bcd_score(memory, 0x8B, 0x8A, 0x89));
    const int spare = memory(0x85);
    const int lives = spare + 1;
    if (lives != state.lives - 1 || memory(0x8C) == 1) state.lives = lives;
    state.terminal = spare == 0xFF;
  }
};

}  // namespace cule::games
