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

// Two players. Whoever does not serve for three seconds loses a point, which the other does not
// get.
struct TennisOfTwo : GameOfTwoRewards {
  static constexpr int kGamesLead = 0;  // aux: the first player's games less the second's
  static constexpr int kNoServe = 1;    // aux: frames since the clock of the serve was last 0
  static constexpr int kGames = 2;      // aux: how many games have been won
  static constexpr int kMostNoServe = 180;

  static constexpr GameInfo info() {
    GameInfo game = Tennis::info();
    game.num_players = 2;
    game.modes = {2, 4};
    return game;
  }

  // The score is the lead in points within the game.
  CULE_HD static void reset(GameState& state) {
    for (int32_t& number : state.aux) number = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int first = memory(0xC7);
    const int second = memory(0xC8);
    const int games_lead = first - second;
    reward_score_change(state, memory(0xC5) - memory(0xC6));
    if (games_lead != state.aux[kGamesLead]) {
      state.reward = games_lead - state.aux[kGamesLead];
      ++state.aux[kGames];
    }
    state.aux[kGamesLead] = games_lead;
    state.aux[kSecondReward] = -state.reward;
    state.terminal = (first >= 6 && games_lead >= 2) || (second >= 6 && games_lead <= -2) ||
                     first == 7 || second == 7;
    if (memory(0xCC) == 0) state.aux[kNoServe] = 0;
    if (++state.aux[kNoServe] < kMostNoServe) return;
    state.aux[kNoServe] = 0;
    const bool first_serves = state.aux[kGames] % 2 == 0;
    state.reward = first_serves ? -1 : 0;
    state.aux[kSecondReward] = first_serves ? 0 : -1;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    Tennis::set_mode(console, mode - 1);
  }
};

}  // namespace cule::games
