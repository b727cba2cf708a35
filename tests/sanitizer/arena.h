// A batch of players, with memory for it, which is stepped with random actions.
//
// Each buffer is allocated alone, with the smallest size that the kernels may expect, so that an
// overrun is noticed.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "bindings/batch_rows.h"
#include "console/check_record.h"
#include "kernels/memory.h"
#include "player.h"

namespace sweep {

struct Settings {
  int frameskip, channels, stack, height, width;  // height 0: the picture's own size
  AutoresetMode autoreset;
  int pool_size;  // 0: exact resets
  bool episodic_life;
  float sticky;
};

inline Settings settings_number(uint32_t i) {
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
    b.num_players = 1;
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

}  // namespace sweep
