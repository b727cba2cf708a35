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

  // Once over, it stays over, and the reward stays as it is, until the next reset.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int own_pieces = 0, computer_pieces = 0;
    for (int row = 0x80; row <= 0x9B; row += 9) {  // two rows of four squares, then a byte between
      for (int square = row; square < row + 8; ++square) {
        const int piece = memory(square);
        own_pieces += piece == 0x10 || piece == 0x20;
        computer_pieces += piece == 0x90 || piece == 0xA0;
      }
    }
    if (own_pieces != 0 && computer_pieces != 0) return;
    // The variant's number in BCD. Its copy at $F6 is scratch space while the computer thinks.
    const bool giveaway = memory(0xB0) > 0x10;
    state.reward = (own_pieces == 0) == giveaway ? 1 : -1;
    state.terminal = true;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    const int variant = mode < 11 ? mode : mode + 6;  // in BCD
    console.select_until(1, [&] { return console.ram(0xF6) == variant; });
    console.soft_reset();
  }
};

}  // namespace cule::games
