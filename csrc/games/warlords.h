// Warlords (Atari 1981). A player whose castle falls loses a point and is out (-1 lives); the last
// one gets a point, and the game is over. With two players, the computer has the other castles.
#pragma once

#include "games/game.h"

namespace cule::games {

template <int kPlayers>
struct WarlordsOfSeveral : GameOfTwo {
  // aux: the rewards of the other players, and who is out, a bit each
  static constexpr int kSecondReward = 0, kOut = 3;

  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "warlords";
    game.md5 = "cbe5a166550a8129a5e6d374901dffad";
    game.num_players = kPlayers;
    game.minimal_actions = action_set(kNoop, kFire, kRight, kLeft, kRightFire, kLeftFire);
    if (kPlayers == 2) game.modes = {3, 5, 8, 10, 13, 15, 18, 20, 23};
    else game.modes = {1, 6, 11, 16, 21};
    game.left = game.right = Controller::kPaddles;
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    for (int32_t& number : state.aux) number = 0;
  }

  static CULE_INLINE bool is_out(int castles, int player) { return castles >> player & 1; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int fallen = memory(0xEE);  // bit 7: the first player's castle, to bit 4: the fourth's
    int out = 0, players_out = 0;
    for (int player = 0; player < kMaxPlayers; ++player) {
      const int fell = fallen >> (7 - player) & 1;
      out |= fell << player;
      players_out += fell;
    }
    state.terminal = players_out >= 3;
    for (int player = 0; player < kMaxPlayers; ++player) {
      int reward = is_out(out, player) && !is_out(state.aux[kOut], player) ? -1 : 0;
      if (state.terminal && !is_out(out, player)) reward = 1;
      (player == 0 ? state.reward : state.aux[kSecondReward + player - 1]) = reward;
    }
    state.aux[kOut] = out;
  }

  CULE_HD static int lives(const GameState& state) { return is_out(state.aux[kOut], 0) ? -1 : 0; }
  CULE_HD static int other_lives(const GameState& state, int player) {
    return is_out(state.aux[kOut], player) ? -1 : 0;
  }
  CULE_HD static int other_reward(const GameState& state, int player) {
    return state.aux[kSecondReward + player - 1];
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0xD9) == mode - 1; });
    console.soft_reset();
  }
};
using WarlordsOfTwo = WarlordsOfSeveral<2>;
using WarlordsOfFour = WarlordsOfSeveral<4>;

}  // namespace cule::games
