// A game that is powered on, with its start states: what cule/console/ does for the package.
#pragma once

#include <random>

#include "console/make_config.h"
#include "execution/decode_rom.h"
#include "kernels/backend.h"
#include "manifest.h"

namespace sweep {

constexpr int kNtscHeight = 210, kPalHeight = 250, kPalFrames = 15;

inline const std::vector<uint32_t>& power_on_numbers() {
  static const std::vector<uint32_t> numbers = [] {
    std::mt19937 generator(kPowerOnSeed);
    std::vector<uint32_t> drawn(1 << 17);
    for (uint32_t& number : drawn) number = static_cast<uint32_t>(generator());
    return drawn;
  }();
  return numbers;
}

inline const OperationTable& operations() {
  static const OperationTable table = make_operation_table();
  return table;
}

// A decoded image, and the one predecoded instruction after its end.
inline std::vector<Predecoded> decode(const CartridgeMap& map, const Bytes& image) {
  std::vector<Predecoded> predecoded(image.size() + 1, kFetchSlowly);
  decode_rom(map, image.data(), static_cast<uint32_t>(image.size()), predecoded.data());
  return predecoded;
}

inline int picture_height(uint32_t game, bool pal) {
  const int height = info_of(game).height;
  return pal && height == kNtscHeight ? kPalHeight : height;
}

// One console's state, or a pool of them.
struct States {
  std::vector<uint32_t> records;
  Bytes ram, cartridge_bytes, pictures, row_of;

  States(size_t count, size_t picture_bytes)
      : records(count * kRecordWords),
        ram(count * kRamBytes),
        cartridge_bytes(count * kCartridgeBytes),
        pictures(count * 2 * picture_bytes),
        row_of(count * 2 * Pictures::kRows) {}

  ResetPool as_pool(int size) const {
    return {size, records.data(), ram.data(), cartridge_bytes.data(), pictures.data()};
  }
  void append_to(States& all) const {
    all.records.insert(all.records.end(), records.begin(), records.end());
    all.ram.insert(all.ram.end(), ram.begin(), ram.end());
    all.cartridge_bytes.insert(all.cartridge_bytes.end(), cartridge_bytes.begin(),
                               cartridge_bytes.end());
    all.pictures.insert(all.pictures.end(), pictures.begin(), pictures.end());
    all.row_of.insert(all.row_of.end(), row_of.begin(), row_of.end());
  }
};

inline void fill_action_ids(uint32_t game, uint8_t* ids) {
  const GameInfo info = info_of(game);
  for (int action = 0, at = 0; action < kNumActions; ++action) {
    if (info.minimal_actions & info.legal_actions & 1u << action)
      ids[at++] = static_cast<uint8_t>(action);
  }
}

// A console on which start states are prepared, as in cule/console/. `picture_bytes` is that of the
// batch.
struct Bench {
  ConsoleConfig config;
  Bytes action_ids = Bytes(kNumActions, 0xFF), rom;
  std::vector<Predecoded> predecoded;
  States state;
  std::vector<uint32_t> group{0};
  Batch batch{};

  Bench(const ConsoleConfig& console, const Bytes& image, size_t picture_bytes)
      : config(console),
        rom(image),
        predecoded(decode(console.map, image)),
        state(1, picture_bytes) {
    fill_action_ids(config.game, action_ids.data());
    batch.num_envs = batch.num_groups = batch.num_players = 1;
    batch.picture_bytes = static_cast<uint32_t>(picture_bytes);
    batch.buffer_capacity = 1 << 14;
    batch.group = group.data();
    batch.configs = &config;
    batch.action_ids = action_ids.data();
    batch.roms = rom.data();
    batch.predecoded = predecoded.data();
    batch.operations = operations().operations;
    batch.power_on = {power_on_numbers().data(), static_cast<uint32_t>(power_on_numbers().size())};
    batch.records = {state.records.data(), 1, kRecordWords};
    batch.ram = state.ram.data();
    batch.cartridge_bytes = state.cartridge_bytes.data();
    batch.pictures = state.pictures.data();
    batch.row_of = state.row_of.data();
    batch.options.fire_reset = 1;
    batch.observation.channels = 1;
  }
};

// A game (or other bytes, under a game's rules), powered on.
struct Player {
  uint32_t game;
  ConsoleConfig config;
  Bytes image;
  States boot{0, 0};
  States pool{0, 0};

  // `booted_as` is the game whose mode is set; its rules alone see the start.
  Player(const Cartridge& cartridge, uint32_t booted_as, int pool_size)
      : game(cartridge.game), image(cartridge.image) {
    const uint32_t bytes = static_cast<uint32_t>(image.size());
    ConsoleConfig first = make_config(booted_as, cartridge.scheme, bytes, false,
                                      picture_height(game, false));
    first.difficulty = info_of(booted_as).power_on_difficulty;
    Bench probe(first, image, static_cast<size_t>(kPalHeight * kLinePixels));
    const bool pal = power_on_env(probe.batch) >= kPalFrames;
    const int height = picture_height(game, pal);
    config = make_config(game, cartridge.scheme, bytes, pal, height);
    Bench bench(make_config(booted_as, cartridge.scheme, bytes, pal, height), image,
                static_cast<size_t>(height * kLinePixels));
    bench.state.records = probe.state.records;
    bench.state.ram = probe.state.ram;
    bench.state.cartridge_bytes = probe.state.cartridge_bytes;
    start_first_episode(bench.batch);
    take_rules(bench.state, booted_as);
    boot = bench.state;
    for (int i = 0; i < pool_size; ++i) {
      start_pool_episode(bench.batch, 3 * i);
      take_rules(bench.state, booted_as);
      bench.state.append_to(pool);
    }
  }

  // Replaces what the rules of `booted_as` have remembered.
  void take_rules(States& state, uint32_t booted_as) const {
    if (booted_as == game) return;
    EnvRecord record;
    const RecordLayout layout{state.records.data(), 1, kRecordWords};
    load_part(layout, 0, 0, record);
    record.game = GameState{};
    with_game(game, [&](auto rules) { rules.reset(record.game); });
    store_part(layout, 0, 0, record);
  }
};

}  // namespace sweep
