// Video Cube (Atari 1982). The score is the number of faces that have one color; all six end the
// game. So does the idle timer when it rolls over, at -1. A mode is 100 * cube + variant; cubes 0
// and 1 are the same.
#pragma once

#include "games/game.h"

namespace cule::games {

struct VideoCube : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "video_cube";
    game.md5 = "3f540a30fdee0b20aed7288e4a5ea528";
    game.starting_noops = 61;
    game.starting_actions = {kFire, kNoop, kNoop};
    game.modes.count = 0;
    for (int cube = 0; cube <= 50; ++cube) {
      for (int variant = 0; variant < 3; ++variant)
        game.modes.values[game.modes.count++] = 100 * cube + variant;
    }
    game.difficulties = {0, 1};
    game.writes_much = true;
    return game;
  }

  static constexpr int kIdleTimer = 0;  // aux: as of the last frame, also across episodes

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int faces = 0;
    for (int face = 0xA0; face < 0xA0 + 6 * 9; face += 9) {
      int block = 1;
      while (block < 9 && memory(face + block) == memory(face)) ++block;
      faces += block == 9;
    }
    const int timer = memory(0xDB);
    const bool timed_out = timer == 0 && state.aux[kIdleTimer] == 255;
    state.aux[kIdleTimer] = timer;
    reward_score_change(state, faces);
    if (timed_out) state.reward = -1;
    state.terminal = timed_out || faces == 6;
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    const int variant = mode % 100;
    const int number = variant == 2 ? 8 : 2 * variant;  // as the game counts them: 0, 2, 8
    console.select_until(2, [&] { return (console.ram(0xFB) & 0x1F) == number; });
    console.soft_reset();
    const int cube = mode < 100 ? 1 : mode / 100;
    while (bcd(console.ram(0x9F)) != cube && !console.gives_up()) console.act(kRight);
  }
};

}  // namespace cule::games
