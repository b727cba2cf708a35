// The CPU backend. Threads share the envs. One thread runs all phases of a step for an env before
// it goes on to the next, so the env's state stays in the cache.
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "execution/profile.h"
#include "execution/threaded_core.h"
#include "kernels/backend.h"
#include "kernels/cpu/draw_env.h"
#include "kernels/cpu/observe.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/memory.h"
#include "kernels/phases.h"
#include "kernels/play.h"
#include "kernels/reset.h"
#include "kernels/see.h"

namespace cule {
namespace {

// A thread's memory for the env that it works on.
struct Workspace {
  explicit Workspace(const Batch& batch)
      : entries(batch.buffer_capacity), starts(segment_words(batch.options)) {
    trail.starts = starts_of_one_env(starts.data());
  }
  bool fits(const Batch& batch) const {
    return entries.size() >= batch.buffer_capacity && starts.size() >= segment_words(batch.options);
  }
  Workplace place() { return {entries.data(), trail, tia, unheard}; }

  std::vector<uint32_t> entries, starts;
  TiaTrail trail{};
  TiaState tia{};
  SoundState unheard{};
  ResizeSpace resizing;
  uint64_t call = 0;  // the number of the call of the backend that it was last used in
};

using Code = MicroCode<PlainMachine>;
using Core = ThreadedCore<PlainMachine>;

// The code of a group's ROM.
std::unique_ptr<Code> decode_group(const Batch& batch, size_t group) {
  const ConsoleConfig& config = batch.configs[group];
  const PlainRom rom = rom_of(batch, config);
  return std::make_unique<Code>(config.map, rom.bytes, config.rom_bytes, rom.predecoded);
}

// The phases of kernels/phases.h for one env. `mask` and `seeds` are those of Backend::reset.
struct EnvPhases {
  const Batch& batch;
  size_t env;
  Workspace& workspace;
  const Core core;
  const uint8_t* mask = nullptr;
  const int64_t* seeds = nullptr;

  const StepTrace& trace() const { return batch.traces[env]; }
  Recording recording() const { return {workspace.entries.data(), workspace.trail.starts}; }

  void play() const {
    Devices devices;
    PlainMachine machine = make_plain_machine(batch, env, devices, workspace.place());
    clear_starts(batch, workspace.trail.starts);
    play_frames(batch, env, machine, core);
    store_end_state(batch, env, machine);
  }
  void hear() const { cule::hear(batch, env); }
  void prepare() const {
    if (must_save(batch, env, trace())) save_pictures(batch, env, OneLane{});
    store_step_end(batch, env, workspace.trail.starts);
  }
  void draw() const { draw_env(batch, env, recording()); }
  void see() const {}  // drawing has found the boxes
  void list() const { list_objects(batch, env, OneLane{}); }
  void list_start() const {
    if (trace().restart != Restart::kNone) list_objects(batch, env, OneLane{});
  }
  void observe() const {
    cule::observe(batch, env, trace().plan, best_vector_level(), workspace.resizing);
  }
  void keep_final() const {
    // A lost life may report a termination without ending the episode (life_loss_info).
    if (!batch.terminated[env] && !batch.truncated[env]) return;
    const size_t bytes = observed_frame_bytes(batch.observation) * batch.observation.stack;
    memcpy(batch.final_observations + env * bytes, batch.observations + env * bytes, bytes);
    if (hears(batch))
      memcpy(final_sounds_of(batch, env), sounds_of(batch, env), sound_bytes(batch));
    if (sees(batch))
      memcpy(final_objects_of(batch, env), objects_of(batch, env),
             object_numbers(batch) * sizeof(int16_t));
  }
  void choose() const { choose_reset(batch, env, mask); }
  void restart() const {
    if (trace().restart == Restart::kNone) return;
    const int64_t seed = seeds ? seeds[env] : kNoSeed;
    if (restarts_from_pool(batch, env))
      copy_outputs_from(batch, env, batch.pool, restart_record(batch, env, seed));
    else emulate_restart(batch, env, seed, core, workspace.place());
  }
  void observe_start() const {
    if (trace().restart != Restart::kNone) observe();
  }
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, const std::vector<int>& cpus) : pool_(threads, cpus) {}

  void step(const Batch& batch, void*) override {
    expect_landed("step");
    pool_.run(batch.num_envs, work_for(batch, {}));
  }

  void reset(const Batch& batch, const uint8_t* mask, const int64_t* seeds, void*) override {
    expect_landed("reset");
    const uint64_t call = prepare(batch);
    pool_.run(batch.num_envs, [&, call](int thread, int env) {
      run_reset(batch, phases(batch, env, thread, call, mask, seeds));
    });
  }

  void copy(void* to, const void* from, size_t bytes, void*) override { memcpy(to, from, bytes); }

  uint64_t fly(const Batch& batch, Flight flight) override {
    const std::vector<int> envs = flight.envs;
    const bool singly = flight.singly;
    ThreadPool::Work work = work_for(batch, std::move(flight));
    take_off(batch, envs);
    try {
      const auto landing = singly ? ThreadPool::Landing::kSingly : ThreadPool::Landing::kTogether;
      auto flown = pool_.start(ThreadPool::Indices(envs), std::move(work), landing);
      if (!singly) flights_.emplace(flights_started_, InTheAir{std::move(flown), envs});
    } catch (...) {
      touch_down(envs);
      throw;
    }
    return flights_started_++;
  }

  void wait(uint64_t number) override {
    ThreadPool::Flight& flight = *of_number(number).flight;
    try {
      pool_.wait(flight);
    } catch (...) {
      land(number);
      throw;
    }
  }

  bool is_done(uint64_t number) override { return pool_.is_done(*of_number(number).flight); }

  void land(uint64_t number) override {
    const InTheAir& landing = of_number(number);
    pool_.wait(*landing.flight);
    touch_down(landing.envs);
    flights_.erase(number);
  }

  std::vector<int> take(int count) override {
    int others = 0;
    for (const auto& [_, one] : flights_) others += static_cast<int>(one.envs.size());
    if (count < 0 || count > in_flight_ - others) {
      throw std::invalid_argument("expected to take at most " +
                                  std::to_string(in_flight_ - others) +
                                  " envs, as many as are in flight singly, got " +
                                  std::to_string(count));
    }
    std::vector<int> taken = pool_.take(count);
    touch_down(taken);
    return taken;
  }

  void finish() override {
    pool_.finish();
    flights_.clear();
    std::fill(flying_.begin(), flying_.end(), false);
    in_flight_ = 0;
  }

  int in_flight() const override { return in_flight_; }

  bool plays_in_step(int) const override { return false; }

  void load_translation(const std::string&, const Predecoded*) override {
    throw std::logic_error("ROMs are translated for GPUs only");
  }

 private:
  struct InTheAir {
    std::shared_ptr<ThreadPool::Flight> flight;
    std::vector<int> envs;
  };
  // Where a batch has its ROMs, and how many.
  using Roms = std::tuple<const ConsoleConfig*, const uint8_t*, const Predecoded*, uint32_t>;

  // What a thread does with an env of a flight. The batch is copied, so that the caller may change
  // its own.
  ThreadPool::Work work_for(const Batch& batch, Flight flight) {
    const uint64_t call = prepare(batch);
    const bool resets = flight.resets;
    return [this, batch, call, resets, seeds = std::move(flight.seeds)](int thread, int env) {
      const int64_t* seeds_at = seeds.empty() ? nullptr : seeds.data();
      const EnvPhases all = phases(batch, env, thread, call, nullptr, seeds_at);
      if (resets) run_reset(batch, all);
      else run_step(batch, all);
    };
  }

  EnvPhases phases(const Batch& batch, int env, int thread, uint64_t call, const uint8_t* mask,
                   const int64_t* seeds) {
    Workspace& workspace = *workspaces_[thread];
    if (workspace.call != call) workspace.resizing.forget();
    workspace.call = call;
    const auto at = static_cast<size_t>(env);
    return EnvPhases{batch, at, workspace, Core{*codes_[batch.group[at]]}, mask, seeds};
  }

  // Makes what threads need for this batch. Returns the number of the call.
  uint64_t prepare(const Batch& batch) {
    // If the last call was for another batch, the workspaces may be too small, and the code may be
    // that of other ROMs, whose memory may be gone.
    const Roms roms(batch.configs, batch.roms, batch.predecoded, batch.num_groups);
    const bool fits = workspaces_.empty() || workspaces_[0]->fits(batch);
    if (!fits || roms != roms_) expect_landed("call with another batch");
    if (!fits) workspaces_.clear();
    while (static_cast<int>(workspaces_.size()) < pool_.threads())
      workspaces_.push_back(std::make_unique<Workspace>(batch));
    if (roms != roms_) decode_all(batch, roms);
    return ++calls_;
  }

  void decode_all(const Batch& batch, const Roms& roms) {
    roms_ = {};  // until all is decoded
    codes_.clear();
    while (codes_.size() < batch.num_groups) codes_.push_back(decode_group(batch, codes_.size()));
    roms_ = roms;
  }

  void expect_landed(const char* what) const {
    if (!in_flight_) return;
    throw std::runtime_error(std::string("expected all envs to have landed before a ") + what +
                             ", got " + std::to_string(in_flight_) + " in flight");
  }

  // Marks envs as being in flight.
  void take_off(const Batch& batch, const std::vector<int>& envs) {
    if (!in_flight_) flying_.assign(batch.num_envs, false);
    for (size_t i = 0; i < envs.size(); ++i) {
      const int env = envs[i];
      const bool known = env >= 0 && env < batch.num_envs && env < static_cast<int>(flying_.size());
      if (known && !flying_[env]) {
        flying_[env] = true;
        ++in_flight_;
        continue;
      }
      touch_down({envs.begin(), envs.begin() + static_cast<std::ptrdiff_t>(i)});
      throw std::invalid_argument(
          known ? "expected envs that are not in flight, got env " + std::to_string(env)
                : "expected envs from 0 to " + std::to_string(batch.num_envs - 1) + ", got " +
                      std::to_string(env));
    }
  }

  void touch_down(const std::vector<int>& envs) {
    for (const int env : envs) flying_[env] = false;
    in_flight_ -= static_cast<int>(envs.size());
  }

  InTheAir& of_number(uint64_t number) {
    const auto found = flights_.find(number);
    if (found != flights_.end()) return found->second;
    throw std::invalid_argument("expected the number of a flight that has not landed, got " +
                                std::to_string(number));
  }

  std::vector<std::unique_ptr<Workspace>> workspaces_;  // of each thread
  std::vector<std::unique_ptr<Code>> codes_;            // of each group
  Roms roms_{};                                         // that the code is of
  std::map<uint64_t, InTheAir> flights_;                // that land together
  std::vector<bool> flying_;                            // whether an env is in flight
  int in_flight_ = 0;
  uint64_t calls_ = 0, flights_started_ = 0;
  ThreadPool pool_;  // the last, so that its threads end before anything else is freed
};

template <class Body, class AnyCore>
void with_first_session(const Batch& batch, const AnyCore& core, const Body& body) {
  Workspace workspace(batch);
  with_session(batch, 0, core, workspace.place(), body);
}
template <class Body>
void with_first_session(const Batch& batch, const Body& body) {
  const std::unique_ptr<Code> code = decode_group(batch, batch.group[0]);
  with_first_session(batch, Core{*code}, body);
}

}  // namespace

Backend* make_cpu_backend(int threads, const std::vector<int>& cpus) {
  return new CpuBackend(threads, cpus);
}

int power_on_env(const Batch& batch) {
  int long_frames = 0;
  with_first_session(batch, [&](auto& session) { long_frames = session.power_on_console(); });
  return long_frames;
}

void start_first_episode(const Batch& batch) {
  with_first_session(batch, [&](auto& session) {
    session.reset_console();
    session.start_episode();
  });
}

void start_pool_episode(const Batch& batch, int noops) {
  const bool fire = buttons_of(batch, 0).fire;
  const EpisodeStart as = start_of(batch.options);
  const bool before_noops = as == EpisodeStart::kAle || as == EpisodeStart::kFire;
  with_first_session(batch, [&](auto& session) {
    session.env.frame_number = 0;
    start_with_noops(session, fire && before_noops, noops_of(batch.options, fire, noops));
  });
}

void continue_pool_episode(const Batch& batch, int played, int noops) {
  const bool fire = buttons_of(batch, 0).fire;
  with_first_session(batch, [&](auto& session) {
    play_noops(session, noops_of(batch.options, fire, played),
               noops_of(batch.options, fire, noops));
    end_of_start(session);
  });
}

void end_pool_episode(const Batch& batch, int noops) {
  const auto draw = [&]() { return noops; };
  with_first_session(batch, [&](auto& session) {
    end_game_start(session, batch.options, buttons_of(batch, 0), draw);
  });
}

void profile_play(const Batch& batch, int frames, bool from_start, uint32_t seed,
                  ProfileEntry* entries) {
  constexpr uint32_t kLongestHold = 16;
  std::mt19937 random(seed);
  with_first_session(batch, ProfilingCore{entries}, [&](auto& session) {
    if (from_start || session.game.terminal) session.start_episode();
    uint32_t action = kNoop;
    int held = 0;
    for (int i = 0; i < frames; ++i) {
      if (held-- == 0) {
        action = legal_or_noop(session.config, random() % kNumActions);
        held = static_cast<int>(random() % kLongestHold);
      }
      session.act(action);
      if (session.game.terminal) session.start_episode();
    }
  });
}

}  // namespace cule
