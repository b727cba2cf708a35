// Makes a ConsoleConfig from a game's facts and its cartridge. Host only.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

#include "cartridge/schemes.h"
#include "console/config.h"
#include "games/games.h"
#include "tia/render/pictures.h"

namespace cule {

inline CartridgeMap map_of_scheme(const std::string& scheme) {
  std::string names;
  for (const SchemeRow& row : kSchemes) {
    if (scheme == row.name) return row.map;
    names += std::string(" ") + row.name;
  }
  throw std::invalid_argument("expected one of the cartridge schemes" + names + ", got " + scheme);
}

// The largest ROM image.
constexpr uint32_t kMaxRomBytes = 1 << 16;
inline uint32_t least_rom_bytes(Scheme scheme) {
  return kSchemes[static_cast<uint32_t>(scheme)].least_bytes;
}

// The tallest picture.
constexpr uint32_t kMaxHeight = Pictures::kRows;
constexpr int32_t cycle_limit(bool pal) {
  return ((pal ? kPalLineLimit : kNtscLineLimit) + 1) * kCyclesPerLine;
}

inline int default_mode(const GameInfo& game) {
  return game.default_mode >= 0 ? game.default_mode : game.modes.values[0];
}
inline bool uses_paddles(const GameInfo& game) {
  return game.left == Controller::kPaddles || game.right == Controller::kPaddles;
}

inline void expect_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(std::string("expected ") + name + " to be from " +
                              std::to_string(least) + " to " + std::to_string(most) + ", got " +
                              std::to_string(value));
}

// The config of game number `index`, whose visible picture has `height` scanlines. The caller sets
// `mode`, `difficulty` and `rom_offset`. The same arguments give the same bytes, padding included.
inline ConsoleConfig make_config(uint32_t index, const std::string& scheme, uint32_t rom_bytes,
                                 bool pal, int height) {
  const CartridgeMap map = map_of_scheme(scheme);
  expect_range("game", index, 0, kNumGames - 1);
  expect_range("rom_bytes", rom_bytes, least_rom_bytes(map.scheme), kMaxRomBytes);
  expect_range("height", height, 1, kMaxHeight);
  ConsoleConfig config;
  std::memset(&config, 0, sizeof config);
  with_game(index, [&](auto rules) {
    const GameInfo game = decltype(rules)::info();
    config.format.first_clock = game.y_start * kClocksPerLine;
    config.format.hmove_blanks = game.hmove_blanks;
    config.num_players = static_cast<uint32_t>(game.num_players);
    config.uses_paddles = uses_paddles(game);
    config.swap_ports = game.swap_ports;
    config.swap_paddles = game.swap_paddles;
    if (config.uses_paddles) {
      const uint32_t first = game.swap_paddles ? kPaddle1 : kPaddle0,
                     second = game.swap_paddles ? kPaddle0 : kPaddle1;
      // With one player nothing turns the paddles in the right socket.
      const bool right = game.right == Controller::kPaddles, turned = game.num_players > 1;
      const uint32_t idle = right ? kCharged : kNotCharged;
      const uint32_t third = right && turned ? first + 2 : idle,
                     fourth = right && turned ? second + 2 : idle;
      config.inpt_wiring = first | second << 4 | third << 8 | fourth << 12;
    }
    config.paddle_max = game.paddle_max;
    config.mode = static_cast<uint32_t>(default_mode(game));
    config.legal_actions = game.legal_actions;
    config.starting_noops = static_cast<uint32_t>(game.starting_noops);
    for (int i = 0; i < game.starting_actions.count; ++i) {
      config.starting_actions[config.num_starting_actions++] = game.starting_actions.values[i];
    }
  });
  // Field by field: an assignment of the whole struct would copy its padding, too.
  config.map.scheme = map.scheme;
  config.map.special_end = map.special_end;
  config.map.special_begin = map.special_begin;
  config.map.a13_mask = map.a13_mask;
  config.map.reset_slices = map.reset_slices;
  config.pal = pal;
  config.height = static_cast<uint32_t>(height);
  config.format.last_clock = config.format.first_clock + height * kClocksPerLine;
  config.cycle_limit = cycle_limit(pal);
  config.rom_bytes = rom_bytes;
  config.game = index;
  return config;
}

}  // namespace cule
