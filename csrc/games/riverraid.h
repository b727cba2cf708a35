// River Raid (Activision 1982). Each digit of the score, and the planes in reserve, are in RAM as
// offsets into the digits' bitmaps: eight times the number. The game ends when the lives byte goes
// from $59 to $58.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Riverraid : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "riverraid";
    game.md5 = "393948436d1f4cc3192410bb918f9724";
    game.difficulties = {0, 1};
    return game;
  }

  static constexpr int kLivesByte = 0;  // aux: as of the last frame
  static constexpr int kFullReserve = 0x58, kNoReserve = 0x59;

  // An offset that is not that of a digit's bitmap counts as 0.
  CULE_HD static int digit(int offset) {
    return (offset & 7) == 0 && offset <= 72 ? offset >> 3 : 0;
  }

  CULE_HD static void reset(GameState& state) { state.aux[kLivesByte] = kFullReserve; }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int score = 0;
    for (int address = 0xCD; address <= 0xD7; address += 2)
      score = score * 10 + digit(memory(address));
    reward_score_change(state, score);
    const int lives_byte = memory(0xC0);
    state.terminal = lives_byte == kFullReserve && state.aux[kLivesByte] == kNoReserve;
    state.aux[kLivesByte] = lives_byte;
  }

  CULE_HD static int lives(const GameState& state) {
    if (state.terminal) return 0;
    const int lives_byte = state.aux[kLivesByte];
    if (lives_byte == kFullReserve) return 4;
    return lives_byte == kNoReserve ? 1 : lives_byte / 8 + 1;
  }
};

}  // namespace cule::games
