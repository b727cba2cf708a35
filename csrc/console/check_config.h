// Checks that make_config can make a config. Configs come from Python as bytes, and their indices
// and sizes are not checked while a console runs. Host only.
#pragma once

#include "console/check_record.h"
#include "console/make_config.h"

namespace cule {

// Returns the name of a field whose value make_config cannot make, or null. `picture_bytes` is the
// room for a picture.
inline const char* find_misfit(const ConsoleConfig& config, uint32_t picture_bytes) {
  if (config.game >= kNumGames) return "game";
  if (config.map.scheme > Scheme::kDPC || config.rom_bytes > kMaxRomBytes ||
      !fits_slices(config.map.reset_slices, config) ||
      config.rom_bytes < least_rom_bytes(config.map.scheme)) {
    return "rom_bytes";
  }
  if (config.height < 1 || config.height > kMaxHeight ||
      config.height * kLinePixels > picture_bytes)
    return "height";
  const TiaFormat& format = config.format;
  if (format.first_clock < 0 || format.first_clock > kPalLineLimit * kClocksPerLine ||
      format.last_clock !=
          format.first_clock + static_cast<int32_t>(config.height) * kClocksPerLine) {
    return "format";
  }
  if (config.cycle_limit != cycle_limit(config.pal)) return "cycle_limit";
  if (config.num_starting_actions > kMaxStartingActions) return "starting_actions";
  if (config.num_players < 1 || config.num_players > kMaxPlayers) return "num_players";
  return nullptr;
}

}  // namespace cule
