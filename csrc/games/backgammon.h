// Backgammon (Atari 1979). A point if the player bears off all 15 pieces first, minus one if the
// computer does; either ends the game.
#pragma once

#include "games/game.h"

namespace cule::games {

struct Backgammon : Game {
  static constexpr GameInfo info() {
    GameInfo game;
    game.name = "backgammon";
    game.md5 = "8556b42aa05f94bc29ff39c39b11bff4";
    game.minimal_actions = action_set(kFire, kRight, kLeft);
    game.difficulties = {3};
    game.left = Controller::kPaddles;
    game.paddle_max = 1000000;
    return game;
  }

  // $80-$9B hold the board, one signed byte per point: the computer's pieces count up, the player's
  // down. $80 and $8E count the pieces that the player and the computer have borne off. The
  // computer also writes on the board while it thinks, so a board counts only if it holds 15 pieces
  // of each side. The result stays until the next episode.
  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    int8_t player_in = 0;
    int8_t computer_in = 0;
    for (int address = 0x81; address <= 0x9B; ++address) {
      const int8_t pieces = static_cast<int8_t>(memory(address));
      if (address == 0x8E) continue;
      if (pieces > 0) computer_in = static_cast<int8_t>(computer_in + pieces);
      if (pieces < 0) player_in = static_cast<int8_t>(player_in - pieces);
    }
    const int8_t player_out = static_cast<int8_t>(-static_cast<int8_t>(memory(0x80)));
    const int8_t computer_out = static_cast<int8_t>(memory(0x8E));
    if (player_in + player_out != 15 || computer_in + computer_out != 15) return;
    if (player_out != 15 && computer_out != 15) return;
    state.reward = player_out == 15 ? 1 : -1;
    state.terminal = true;
  }

  // The one mode on offer is the cartridge's fourth: against the computer, without a doubling cube.
  template <class Console>
  CULE_HD static void set_mode(Console& console, int) {
    console.select_until(1, [&] { return console.ram(0xDC) == 3; });
    console.soft_reset();
  }
};

// Two players.
struct BackgammonOfTwo : GameOfTwo {
  static constexpr GameInfo info() {
    GameInfo game = Backgammon::info();
    game.num_players = 2;
    game.modes = {4};
    return game;
  }

  template <class Memory>
  CULE_HD static void step(const Memory& memory, GameState& state) {
    Backgammon::step(memory, state);
  }

  template <class Console>
  CULE_HD static void set_mode(Console& console, int mode) {
    console.select_until(1, [&] { return console.ram(0xDC) == mode; });
    console.soft_reset();
  }
};

}  // namespace cule::games
