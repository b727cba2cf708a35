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
// Lines of the manifest, which test_sanitizer.py writes:
//   entries FIRST FURTHER
//       room in the instruction buffer for a step's first frame, and for each further one
//   rom NAME SCHEME PATH
//   table SOURCE_HEIGHT HEIGHT WIDTH KIND SCALE
//         ROWS (FIRST COUNT WEIGHT)... COLUMNS (FIRST COUNT WEIGHT)... WEIGHTS W...
//
// Each buffer is allocated alone, with the smallest size that the kernels may expect, so that
// an overrun is noticed. The last line of the output counts what was played.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "bindings/batch_rows.h"
#include "console/check_record.h"
#include "console/make_config.h"
#include "execution/decode_rom.h"
#include "kernels/backend.h"
#include "kernels/memory.h"

namespace {

using namespace cule;
using Bytes = std::vector<uint8_t>;

constexpr int kNtscHeight = 210, kPalHeight = 250, kPalFrames = 15;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

struct Cartridge {
  std::string name, scheme;
  uint32_t game;
  Bytes image;
};

struct Table {
  ResampleKind kind;
  float scale;
  std::vector<ResampleSpan> rows, columns;
  std::vector<float> weights;
};
using Shape = std::tuple<int, int, int>;  // source height, height, width

struct Manifest {
  std::vector<Cartridge> cartridges;
  std::map<Shape, Table> tables;
  int first_entries = 0, further_entries = 0;
};

GameInfo info_of(uint32_t game) {
  GameInfo info;
  with_game(game, [&](auto rules) { info = decltype(rules)::info(); });
  return info;
}

uint32_t game_named(const std::string& name) {
  for (uint32_t i = 0; i < kNumGames; ++i) {
    if (info_of(i).name == name) return i;
  }
  fail("expected the name of a game, got " + name);
}

std::vector<ResampleSpan> read_spans(std::istream& in) {
  size_t count = 0;
  in >> count;
  std::vector<ResampleSpan> spans(count);
  for (ResampleSpan& span : spans) in >> span.first >> span.count >> span.weight;
  return spans;
}

Manifest read_manifest(const std::string& path) {
  Manifest manifest;
  std::ifstream file(path);
  if (!file) fail("cannot read " + path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string what;
    in >> what;
    if (what == "entries") {
      in >> manifest.first_entries >> manifest.further_entries;
    } else if (what == "rom") {
      Cartridge cartridge;
      std::string image;
      in >> cartridge.name >> cartridge.scheme >> std::ws;
      std::getline(in, image);
      std::ifstream bytes(image, std::ios::binary);
      cartridge.image.assign(std::istreambuf_iterator<char>(bytes), {});
      if (cartridge.image.empty()) fail("cannot read " + image);
      cartridge.game = game_named(cartridge.name);
      manifest.cartridges.push_back(cartridge);
    } else {
      int source = 0, height = 0, width = 0, kind = 0;
      size_t count = 0;
      Table table;
      in >> source >> height >> width >> kind >> table.scale;
      table.kind = static_cast<ResampleKind>(kind);
      table.rows = read_spans(in);
      table.columns = read_spans(in);
      in >> count;
      table.weights.resize(count);
      for (float& weight : table.weights) in >> weight;
      if (!in) fail("expected a table, got: " + line);
      manifest.tables[{source, height, width}] = table;
    }
  }
  return manifest;
}

const std::vector<uint32_t>& power_on_numbers() {
  static const std::vector<uint32_t> numbers = [] {
    std::mt19937 generator(kPowerOnSeed);
    std::vector<uint32_t> drawn(1 << 17);
    for (uint32_t& number : drawn) number = static_cast<uint32_t>(generator());
    return drawn;
  }();
  return numbers;
}

const OperationTable& operations() {
  static const OperationTable table = make_operation_table();
  return table;
}

// A decoded image, and the one predecoded instruction after its end.
std::vector<Predecoded> decode(const CartridgeMap& map, const Bytes& image) {
  std::vector<Predecoded> predecoded(image.size() + 1, kFetchSlowly);
  decode_rom(map, image.data(), static_cast<uint32_t>(image.size()), predecoded.data());
  return predecoded;
}

int picture_height(uint32_t game, bool pal) {
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

void fill_action_ids(uint32_t game, uint8_t* ids) {
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
    batch.num_envs = batch.num_groups = 1;
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

struct Settings {
  int frameskip, channels, stack, height, width;  // height 0: the picture's own size
  AutoresetMode autoreset;
  int pool_size;  // 0: exact resets
  bool episodic_life;
  float sticky;
};

Settings settings_number(uint32_t i) {
  static const Settings kSettings[] = {
      {4, 1, 4, 84, 84, AutoresetMode::kNextStep, 0, false, 0.0f},
      {1, 3, 1, 0, 0, AutoresetMode::kSameStep, 3, false, 0.25f},
      {5, 3, 2, 105, 80, AutoresetMode::kNextStep, 3, true, 0.25f},
      {2, 1, 3, 50, 37, AutoresetMode::kSameStep, 0, true, 0.0f},
      {3, 1, 4, 105, 80, AutoresetMode::kDisabled, 3, false, 0.0f},
      {4, 1, 1, 0, 0, AutoresetMode::kDisabled, 0, false, 0.25f},
  };
  return kSettings[i % (sizeof kSettings / sizeof kSettings[0])];
}

struct Totals {
  long roms = 0, frames = 0, resets = 0, faults = 0, jams = 0, refused = 0;
};

// A batch with one env for each player.
class Arena {
 public:
  Arena(const std::vector<Player>& players, const Settings& settings, const Manifest& manifest,
        uint32_t seed)
      : settings_(settings), random_(seed), n_(players.size()) {
    int tallest = 0;
    for (const Player& player : players)
      tallest = std::max(tallest, static_cast<int>(player.config.height));
    if (settings_.height == 0) {
      settings_.height = tallest;
      settings_.width = kLinePixels;
    }
    const size_t picture = static_cast<size_t>(tallest * kLinePixels);
    states_ = std::make_unique<States>(n_, picture);
    boot_ = std::make_unique<States>(0, 0);
    pool_ = std::make_unique<States>(0, 0);
    for (size_t i = 0; i < n_; ++i) {
      const Player& player = players[i];
      group_.push_back(static_cast<uint32_t>(i));
      configs_.push_back(player.config);
      // A byte between two images, as there is one more predecoded instruction; not after the last.
      roms_.resize(predecoded_.size());
      configs_.back().rom_offset = static_cast<uint32_t>(roms_.size());
      roms_.insert(roms_.end(), player.image.begin(), player.image.end());
      const std::vector<Predecoded> decoded = decode(player.config.map, player.image);
      predecoded_.insert(predecoded_.end(), decoded.begin(), decoded.end());
      action_ids_.resize((i + 1) * kNumActions, 0xFF);
      fill_action_ids(player.game, &action_ids_[i * kNumActions]);
      append(player.boot, player.config.height, picture, *boot_);
      append(player.pool, player.config.height, picture, *pool_);
      const Table& table = manifest.tables.at(
          {static_cast<int>(player.config.height), settings_.height, settings_.width});
      resamples_.push_back(
          {table.kind, table.rows.data(), table.columns.data(), table.weights.data(), table.scale});
    }
    for (size_t i = 0; i < 512u * static_cast<size_t>(settings_.channels); ++i)
      palettes_.push_back(static_cast<uint8_t>(i * 37));
    fill_batch(static_cast<uint32_t>(picture));
    allocate();
    for (size_t i = 0; i < n_; ++i) inputs_.strengths[i] = inputs_.strengths_b[i] = 1.0f;
    const int further = manifest.further_entries * (settings_.frameskip - 1);
    batch_.buffer_capacity = static_cast<uint32_t>(manifest.first_entries + further);
  }

  // Steps with random actions until each env has played about `frames` frames; a reset by hand now
  // and then.
  void play(int frames, int threads, Totals& totals) {
    const std::unique_ptr<Backend> backend(make_cpu_backend(threads));
    const std::vector<int64_t> seeds(n_, 123);
    backend->reset(batch_, nullptr, seeds.data(), nullptr);
    note_faults();
    play_on(*backend, frames, totals);
  }

  // The same from where the envs are.
  void play_on(Backend& backend, int frames, Totals& totals) {
    Bytes mask(n_);
    for (int played = 0, step = 1; played < frames; played += settings_.frameskip, ++step) {
      for (size_t i = 0; i < n_; ++i) choose_actions(i);
      backend.step(batch_, nullptr);
      note_faults();
      totals.frames += static_cast<long>(n_) * settings_.frameskip;
      bool any = false;
      for (size_t i = 0; i < n_; ++i) {
        const bool over = batch_.terminated[i] || batch_.truncated[i];
        mask[i] = (over && settings_.autoreset == AutoresetMode::kDisabled) || random_() % 400 == 0;
        any |= mask[i] != 0;
        totals.resets += over || mask[i];
      }
      if (any) backend.reset(batch_, mask.data(), nullptr, nullptr);
    }
    for (int32_t faults : seen_faults_) {
      if (faults) std::fprintf(stderr, "  faults %d\n", faults);
      totals.faults += faults != 0;
      totals.jams += (faults & kFaultJam) != 0;
    }
  }

  // Makes each word of env 0's state an extreme, one at a time, and plays a step of what could have
  // come about.
  void play_extremes(Totals& totals) {
    const std::unique_ptr<Backend> backend(make_cpu_backend(1));
    const States before = *states_;
    auto try_all = [&](size_t words, auto&& set) {
      for (size_t word = 0; word < words; ++word) {
        for (uint32_t extreme : {0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 0x00FF00FFu, 0x01010101u,
                                 0x000000FFu, 0x3FFFFFFFu}) {
          std::copy(before.records.begin(), before.records.end(), states_->records.begin());
          std::copy(before.ram.begin(), before.ram.end(), states_->ram.begin());
          std::copy(before.cartridge_bytes.begin(), before.cartridge_bytes.end(),
                    states_->cartridge_bytes.begin());
          set(word, extreme);
          EnvRecord record;
          load_part(batch_.records, 0, 0, record);
          if (find_misfit(record, states_->cartridge_bytes.data(), configs_[0])) ++totals.refused;
          else play_on(*backend, settings_.frameskip, totals);
        }
      }
    };
    try_all(kRecordWords, [&](size_t word, uint32_t extreme) { states_->records[word] = extreme; });
    try_all(kCartridgeBytes / 4, [&](size_t word, uint32_t extreme) {
      std::memcpy(&states_->cartridge_bytes[word * 4], &extreme, sizeof extreme);
    });
  }

  void claim_another_env() { ++batch_.num_envs; }
  void claim_frames(int32_t frame_number) {
    EnvState env;
    load_part(batch_.records, 0, offsetof(EnvRecord, env), env);
    env.frame_number = frame_number;
    store_part(batch_.records, 0, offsetof(EnvRecord, env), env);
  }

  int32_t cycle_of(size_t env) const {
    ConsoleState console;
    load_part(batch_.records, env, offsetof(EnvRecord, console), console);
    return console.ports.cycle;
  }

 private:
  static void append(const States& states, uint32_t height, size_t picture, States& all) {
    States padded = states;
    const size_t own = static_cast<size_t>(height) * kLinePixels,
                 count = states.pictures.size() / own;
    padded.pictures.assign(count * picture, 0);
    for (size_t i = 0; i < count; ++i)
      std::memcpy(&padded.pictures[i * picture], &states.pictures[i * own], own);
    padded.append_to(all);
  }

  void choose_actions(size_t i) {
    if (random_() % 10 == 0) inputs_.actions[i] = static_cast<int32_t>(random_() % kNumActions);
    if (random_() % 10 == 0) inputs_.actions_b[i] = static_cast<int32_t>(random_() % kNumActions);
    inputs_.strengths[i] = static_cast<float>(random_() % 101) / 100.0f;
    inputs_.strengths_b[i] = static_cast<float>(random_() % 101) / 100.0f;
  }

  void note_faults() {
    seen_faults_.resize(n_);
    for (size_t i = 0; i < n_; ++i) seen_faults_[i] |= batch_.faults[i];
  }

  void fill_batch(uint32_t picture) {
    Batch& b = batch_;
    b.num_envs = static_cast<int32_t>(n_);
    b.num_groups = static_cast<uint32_t>(n_);
    b.picture_bytes = picture;
    b.group = group_.data();
    b.configs = configs_.data();
    b.action_ids = action_ids_.data();
    b.roms = roms_.data();
    b.predecoded = predecoded_.data();
    b.operations = operations().operations;
    b.power_on = {power_on_numbers().data(), static_cast<uint32_t>(power_on_numbers().size())};
    b.records = {states_->records.data(), 1, kRecordWords};
    b.ram = states_->ram.data();
    b.cartridge_bytes = states_->cartridge_bytes.data();
    b.pictures = states_->pictures.data();
    b.row_of = states_->row_of.data();
    b.envs_per_pooled = b.keeps_pooled = 1;
    b.boot = boot_->as_pool(1);
    b.pool = pool_->as_pool(settings_.pool_size);
    StepOptions& options = b.options;
    options.frameskip = settings_.frameskip;
    options.max_frames = 1 << 30;
    options.noop_max = 30;
    options.maxpool = options.reward_clipping = options.fire_reset = 1;
    options.episodic_life = settings_.episodic_life;
    options.repeat_action_probability = settings_.sticky;
    options.autoreset = settings_.autoreset;
    b.observation = {settings_.height, settings_.width,  settings_.channels,
                     settings_.stack,  palettes_.data(), resamples_.data()};
  }

  // Allocates all that is not there yet, and is not constant: what the rows say is needed, player
  // B's inputs, too, and the generators where resets are emulated.
  void allocate() {
    const Batch& b = batch_;
    const Use use{true, false};
#define CULE_PART(name, member, life, needed, ...) \
  batch_.member = place(batch_.member, Life::life, needed, shape_of(__VA_ARGS__));
#define CULE_ARRAY(type, name, ...) CULE_PART(name, name, __VA_ARGS__)
    CULE_BATCH_ARRAYS(CULE_ARRAY, CULE_PART)
#undef CULE_PART
#undef CULE_ARRAY
    inputs_ = {const_cast<int32_t*>(b.actions), const_cast<int32_t*>(b.actions_b),
               const_cast<float*>(b.strengths), const_cast<float*>(b.strengths_b)};
  }
  template <class T>
  T* place(T* there, Life life, bool needed, const std::vector<uint64_t>& shape) {
    const bool emulates = settings_.pool_size == 0;
    const bool wanted = needed || life == Life::kInput || (life == Life::kState && emulates);
    if (there || life == Life::kConstant || !wanted) return there;
    memory_.emplace_back(batch_array("", life, needed, shape, there).bytes());
    return reinterpret_cast<T*>(memory_.back().data());
  }

  Settings settings_;
  std::mt19937 random_;
  size_t n_;
  Batch batch_{};
  std::unique_ptr<States> states_, boot_, pool_;
  std::vector<Bytes> memory_;
  struct {
    int32_t *actions, *actions_b;
    float *strengths, *strengths_b;
  } inputs_ = {};
  std::vector<uint32_t> group_;
  std::vector<ConsoleConfig> configs_;
  std::vector<Predecoded> predecoded_;
  std::vector<Resample> resamples_;
  Bytes action_ids_, roms_, palettes_;
  std::vector<int32_t> seen_faults_;
};

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

// Whether setting its default mode takes more than resets, which need not end when the ROM is
// another one.
struct ModeProbe {
  bool touched = false;
  int ram(int) { return touched = true, 0; }
  int cart_ram(int) { return touched = true, 0; }
  bool gives_up() { return touched = true; }
  uint32_t random() { return touched = true, 0; }
  void press_select(int) { touched = true; }
  void act(uint32_t) { touched = true; }
  void soft_reset() {}
  template <class Condition>
  void select_until(int, Condition&&) { touched = true; }
};

std::vector<uint32_t> games_without_modes() {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < kNumGames; ++i) {
    ModeProbe probe;
    with_game(i, [&](auto rules) { rules.set_mode(probe, default_mode(info_of(i))); });
    if (!probe.touched) found.push_back(i);
  }
  if (found.empty()) fail("expected a game whose mode needs no SELECT");
  return found;
}

// Bytes as they come; bytes without opcodes that halt; programs that do little but access the TIA;
// the same with the RIOT, the cartridge and the stack between.
enum class RandomRom : uint32_t { kBytes, kNoHalts, kTiaProgram, kBusProgram, kCount };

bool halts(uint8_t byte) { return (byte & 0x1F) == 0x12 || ((byte & 0x9F) == 0x02); }

Bytes random_image(RandomRom kind, size_t size, std::mt19937& random) {
  Bytes image(size);
  for (uint8_t& byte : image) {
    do byte = static_cast<uint8_t>(random());
    while (kind != RandomRom::kBytes && halts(byte));
  }
  if (kind < RandomRom::kTiaProgram) return image;
  // Stores and loads of $00 to $3F, or of anything, with the registers changing between, and a jump
  // back at each page's end.
  const uint8_t stores[] = {0x85, 0x86, 0x84, 0x95, 0x94, 0x96, 0x87, 0xE6, 0x06},
                loads[] = {0xA5, 0xA6, 0xA4, 0xB5, 0x24, 0xA9, 0xA2, 0xA0};
  const uint8_t far[] = {0x8D, 0x9D, 0x99, 0xAD, 0xBD, 0xEE, 0x2C, 0x0D},
                single[] = {0x48, 0x68, 0xE8, 0x88, 0x0A, 0xCA, 0xC8, 0x8A, 0xEA};
  for (size_t page = 0; page + 256 <= size; page += 256) {
    size_t at = page;
    auto put = [&](uint32_t byte) { image[at++] = static_cast<uint8_t>(byte); };
    while (at < page + 249) {
      const uint32_t which = random() % 10;
      if (which < 5) put(stores[random() % sizeof stores]), put(random() % 0x40);
      else if (which < 8) put(loads[random() % sizeof loads]), put(random() % 0x100);
      else if (which < 9 || kind == RandomRom::kTiaProgram) put(single[random() % sizeof single]);
      else put(far[random() % sizeof far]), put(random()), put(random());
    }
    put(0x4C), put(0), put(0xF0 | random() % 16);
    while (at < page + 256) put(0xF0 | random() % 16);
  }
  return image;
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

// A cartridge that runs `program` over and over.
Cartridge loop_of(const Bytes& program, uint32_t game) {
  Bytes image(4096, 0xEA);
  const uint8_t back[] = {0x4C, 0x00, 0xF0};
  std::copy(std::begin(back), std::end(back),
            std::copy(program.begin(), program.end(), image.begin()));
  image[0xFFC] = 0x00;
  image[0xFFD] = 0xF0;
  return {"loop", "4K", game, image};
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
