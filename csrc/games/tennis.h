// Tennis (Activision 1981). Each point counts 1 for or against. The point that wins a game counts
// as the change of the lead in games. Ends with the set.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Tennis : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "tennis";
    game.md5 = "42cdd6a9e42a3639e190722b8ea3fc51";
    game.modes = {0, 2};
    game.difficulties = {0, 1, 2, 3};
    return game;
  }

  static constexpr int kGamesLead = 0;   // aux: the player's games less the computer's
  static constexpr int kPointsLead = 1;  // aux: the same within the game

  CULE_HD static void reset(GameState& state) {
    state.aux[kGamesLead] = state.aux[kPointsLead] = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int player = memory(0xC7);
    const int computer = memory(0xC8);
    const int games_lead = player - computer;
    const int points_lead = memory(0xC5) - memory(0xC6);
    state.reward = games_lead - state.aux[kGamesLead];
    if (state.reward == 0) state.reward = points_lead - state.aux[kPointsLead];
    state.aux[kGamesLead] = games_lead;
    state.aux[kPointsLead] = points_lead;
    const bool set_won = player >= 6 && games_lead >= 2;
    const bool set_lost = computer >= 6 && games_lead <= -2;
    state.terminal = set_won || set_lost || player == 7 || computer == 7;
  }

  // No lives are ever reported.
  CULE_HD static int lives(const GameState&) { return 0; }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(2, [&] { return console.ram(0x80) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
