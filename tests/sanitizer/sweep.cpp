// Plays games, random bytes and endless frames through the CPU backend, under sanitizers.
//
//   sweep games MANIFEST FRAMES SHARD SHARDS
//       each game of the manifest alone, for FRAMES frames of random actions
//   sweep mixed MANIFEST FRAMES
//       all games of the manifest in one batch, on two threads
//   sweep random MANIFEST COUNT OTHERS SHARD SHARDS
//       COUNT ROMs of random bytes, OTHERS of each other kind of RandomRom
//   sweep endless MANIFEST
//       programs whose frames never end
//   sweep states MANIFEST SHARD SHARDS
//       states with an extreme word, as in a damaged file: those that pass the checks are played
//   sweep planted MANIFEST overrun|overflow
//       a fault that the sanitizers have to notice: the kernels are given one env too many, or an
//       env that has played as many frames as can be counted
//
// manifest.h describes the manifest. The last line of the output counts what was played.
#include <limits>

#include "arena.h"
#include "programs.h"

namespace {

using namespace sweep;

void play_alone(const Player& player, const Settings& settings, const Manifest& manifest,
                uint32_t seed, int frames, Totals& totals) {
  Arena({player}, settings, manifest, seed).play(frames, 2, totals);
  ++totals.roms;
}

// Each game in two of the settings.
void sweep_games(const Manifest& manifest, int frames, uint32_t shard, uint32_t shards,
                 Totals& totals) {
  for (uint32_t i = shard; i < manifest.cartridges.size(); i += shards) {
    const Cartridge& cartridge = manifest.cartridges[i];
    std::fprintf(stderr, "%s\n", cartridge.name.c_str());
    const Player player(cartridge, cartridge.game, 3);
    play_alone(player, settings_number(i), manifest, i, frames, totals);
    play_alone(player, settings_number(i + 3), manifest, i, frames, totals);
  }
}

// All games side by side, on two threads.
void sweep_mixed(const Manifest& manifest, int frames, Totals& totals) {
  std::vector<Player> players;
  for (const Cartridge& cartridge : manifest.cartridges)
    players.emplace_back(cartridge, cartridge.game, 1);
  Settings settings = settings_number(0);
  settings.pool_size = 1;
  Arena(players, settings, manifest, 1).play(frames, 2, totals);
  totals.roms += static_cast<long>(players.size());
}

void sweep_random(const Manifest& manifest, uint32_t count, uint32_t others, uint32_t shard,
                  uint32_t shards, Totals& totals) {
  const std::pair<const char*, size_t> kinds[] = {
      {"2K", 2048},   {"4K", 4096},    {"F8", 8192}, {"F8SC", 8192}, {"F6", 16384},
      {"F6SC", 16384}, {"E0", 8192}, {"FE", 8192}, {"DPC", 10495}, {"DPC", 10240}};
  const std::vector<uint32_t> plain = games_without_modes();
  Manifest cramped = manifest;  // so that buffers get full
  cramped.first_entries = cramped.further_entries = 200;
  const uint32_t all = count + others * (static_cast<uint32_t>(RandomRom::kCount) - 1);
  for (uint32_t i = shard; i < all; i += shards) {
    std::mt19937 random(i);
    const auto& [scheme, size] = kinds[i % 10];
    const RandomRom kind = i < count ? RandomRom::kBytes
                                     : static_cast<RandomRom>(1 + (i - count) / others);
    Cartridge cartridge{"random", scheme, static_cast<uint32_t>(random() % kNumGames),
                        random_image(kind, size, random)};
    Settings settings = settings_number(static_cast<uint32_t>(random()));
    uint32_t booted_as = plain[random() % plain.size()];
    if (settings.pool_size == 0)
      cartridge.game = booted_as;  // the exact reset sets the mode again and again
    std::fprintf(stderr, "random ROM %u: %s, rules of %s\n", i, scheme,
                 info_of(cartridge.game).name);
    play_alone(Player(cartridge, booted_as, settings.pool_size), settings,
               random() % 4 ? manifest : cramped, i, 60, totals);
  }
}

// Frames that are cut off by the instruction limit, one after the other: cycle counters must not
// grow without bound.
void sweep_endless(const Manifest& manifest, Totals& totals) {
  const uint32_t paddles = game_named("kaboom"), sticks = game_named("pitfall");
  const Bytes programs[] = {{},
                            {0xA5, 0x00},
                            {0xAD, 0x84, 0x02},
                            {0xA5, 0x08},
                            {0xE3, 0x80, 0xFE, 0x80, 0x00, 0xA5, 0x38}};
  for (const Bytes& program : programs) {
    for (uint32_t game : {paddles, sticks}) {
      const Player player(loop_of(program, game), sticks, 1);
      Settings settings = settings_number(2);
      settings.pool_size = 1;
      settings.height = settings.width = 84;
      Arena arena({player}, settings, manifest, 0);
      arena.play(300, 1, totals);
      ++totals.roms;
      if (arena.cycle_of(0) >= 2 * kOpenFrameLimit)
        fail("a cycle counter has grown to " + std::to_string(arena.cycle_of(0)));
    }
  }
}

// A game of each kind of cartridge, one with paddles, and one of a PAL console's height.
void sweep_states(const Manifest& manifest, uint32_t shard, uint32_t shards, Totals& totals) {
  std::map<std::string, size_t> of_scheme;
  for (size_t i = 0; i < manifest.cartridges.size(); ++i)
    of_scheme.emplace(manifest.cartridges[i].scheme, i);
  std::vector<uint32_t> games{game_named("kaboom"), game_named("air_raid")};
  for (const auto& [scheme, i] : of_scheme) games.push_back(manifest.cartridges[i].game);
  for (const Cartridge& cartridge : manifest.cartridges) {
    const auto at = std::find(games.begin(), games.end(), cartridge.game) - games.begin();
    if (at == static_cast<std::ptrdiff_t>(games.size()) ||
        static_cast<uint32_t>(at) % shards != shard)
      continue;
    std::fprintf(stderr, "%s\n", cartridge.name.c_str());
    Arena arena({Player(cartridge, cartridge.game, 3)}, settings_number(2), manifest, 0);
    arena.play(100, 1, totals);
    arena.play_extremes(totals);
    ++totals.roms;
  }
}

// Steps with values that the kernels must never be given.
void sweep_planted(const Manifest& manifest, const std::string& fault, Totals& totals) {
  const Player player(manifest.cartridges.at(0), manifest.cartridges.at(0).game, 3);
  Arena arena({player}, settings_number(1), manifest, 0);
  arena.play(2, 1, totals);
  if (fault == "overrun") arena.claim_another_env();
  else if (fault == "overflow") arena.claim_frames(std::numeric_limits<int32_t>::max());
  else fail("expected overrun or overflow, got " + fault);
  arena.play_on(*std::unique_ptr<Backend>(make_cpu_backend(1)), 1, totals);
}

void run(const std::vector<std::string>& words) {
  auto number = [&](size_t i) { return static_cast<uint32_t>(std::stoul(words.at(i))); };
  const Manifest manifest = read_manifest(words.at(1));
  Totals totals;
  if (words[0] == "games")
    sweep_games(manifest, static_cast<int>(number(2)), number(3), number(4), totals);
  else if (words[0] == "mixed") sweep_mixed(manifest, static_cast<int>(number(2)), totals);
  else if (words[0] == "random")
    sweep_random(manifest, number(2), number(3), number(4), number(5), totals);
  else if (words[0] == "endless") sweep_endless(manifest, totals);
  else if (words[0] == "states") sweep_states(manifest, number(2), number(3), totals);
  else if (words[0] == "planted") sweep_planted(manifest, words.at(2), totals);
  else fail("expected games, mixed, random, endless, states or planted, got " + words[0]);
  std::printf("roms %ld frames %ld resets %ld faults %ld jams %ld refused %ld\n", totals.roms,
              totals.frames, totals.resets, totals.faults, totals.jams, totals.refused);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "sweep: %s\n", problem.what());
    return 1;
  }
}
