// Video Checkers (Atari 1980). Against the computer: 1 for taking its last piece, -1 for losing
// your own; in variants 11 to 19 (giveaway checkers) the other way round.
#pragma once

#include "games/game.h"

namespace cule::games {

struct VideoCheckers : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "video_checkers";
    game.md5 = "539d26b6e9df0da8e7465f0f5ad863b7";
    game.minimal_actions = action_set(kFire, kUpRight, kUpLeft, kDownRight, kDownLeft);
    game.modes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19};
    game.frames_cut_off = true;
    return game;
  }

  // How many pieces each side has: the player, or the first of two, and the other one.
  struct Pieces {
    int first = 0, second = 0;
  };
  template <class Memory>
  static CULE_INLINE Pieces count_pieces(const Memory& memory) {
    Pieces pieces;
    for (int row = 0x80; row <= 0x9B; row += 9) {  // two rows of four squares, then a byte between
      for (int square = row; square < row + 8; ++square) {
        const int piece = memory(square);
        pieces.first += piece == 0x10 || piece == 0x20;
        pieces.second += piece == 0x90 || piece == 0xA0;
      }
    }
    return pieces;
  }

  // Once over, it stays over, and the reward stays as it is, until the next reset.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const Pieces pieces = count_pieces(memory);
    if (pieces.first != 0 && pieces.second != 0) return;
    // The variant's number in BCD. Its copy at $F6 is scratch space while the computer thinks.
    const bool giveaway = memory(0xB0) > 0x10;
    state.reward = (pieces.first == 0) == giveaway ? 1 : -1;
    state.terminal = true;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    const int variant = mode < 11 ? mode : mode + 6;  // in BCD
    console.select_until(1, [&] { return console.ram(0xF6) == variant; });
    console.soft_reset();
  }
};

// Two players; the second has the white pieces. Whoever has not moved for ten seconds loses a
// point, which the other does not get.
struct VideoCheckersOfTwo : GameOfTwoRewards {
  static constexpr int kTurnFrames = 0;  // aux: how long the turn has been the same
  static constexpr int kWhiteTurn = 1;   // aux: whether it is the second player's
  static constexpr int kMostTurnFrames = 600;

  static constexpr GameInfo info() {
    GameInfo game = VideoCheckers::info();
    game.num_players = 2;
    game.modes = {10};
    return game;
  }

  CULE_HD static void reset(GameState& state) {
    for (int32_t& number : state.aux) number = 0;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    const int white_turn = memory(0xC0) >> 4 != 0;
    if (white_turn != state.aux[kWhiteTurn]) state.aux[kTurnFrames] = 0;
    state.aux[kWhiteTurn] = white_turn;
    state.reward = state.aux[kSecondReward] = 0;
    if (++state.aux[kTurnFrames] > kMostTurnFrames) {
      state.aux[kTurnFrames] = 0;
      (white_turn ? state.aux[kSecondReward] : state.reward) = -1;
    }
    const VideoCheckers::Pieces pieces = VideoCheckers::count_pieces(memory);
    if (pieces.first != 0 && pieces.second != 0) return;
    state.reward = pieces.first == 0 ? -1 : 1;
    state.aux[kSecondReward] = -state.reward;
    state.terminal = true;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return bcd(console.ram(0xF6)) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
