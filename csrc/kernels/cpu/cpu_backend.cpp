// The CPU backend. Threads share the envs. One thread runs all phases of a step for an env before
// it goes on to the next, so the env's state stays in the cache.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "execution/profile.h"
#include "execution/threaded_core.h"
#include "kernels/backend.h"
#include "kernels/cpu/draw_env.h"
#include "kernels/cpu/observe.h"
#include "kernels/memory.h"
#include "kernels/phases.h"
#include "kernels/play.h"
#include "kernels/reset.h"

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
  Workplace place() { return {entries.data(), trail, tia}; }

  std::vector<uint32_t> entries, starts;
  TiaTrail trail{};
  TiaState tia{};
  ResizeSpace resizing;
};

// Calls `work(thread, index)` for every index below `count`, on `threads` threads, one of them the
// caller's. Each thread has a share of the indices: the same one in each run, so that what belongs
// to an index stays in the thread's caches. A thread that has done its share takes from those of
// the others, one index at a time, so all end nearly together.
//
// Thread i runs on CPU `cpus[i]` only, if there are any. The caller's, thread 0, is left alone.
class ThreadPool {
 public:
  ThreadPool(int threads, const std::vector<int>& cpus) : shares_(threads) {
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { serve(i); });
    } catch (const std::exception& problem) {  // a limit on processes or memory
      close();
      throw std::runtime_error("expected to start " + std::to_string(threads - 1) +
                               " threads beside the caller's, got " +
                               std::to_string(workers_.size()) +
                               ", so that num_threads cannot be " + std::to_string(threads) +
                               " here: " + problem.what());
    }
    for (size_t i = 0; i < workers_.size() && i + 1 < cpus.size(); ++i) {
      if (pin_thread(workers_[i].native_handle(), cpus[i + 1])) continue;
      close();
      throw std::runtime_error("expected to pin a thread to CPU " + std::to_string(cpus[i + 1]) +
                               ", as thread_affinity_offset asks, but this system refuses");
    }
  }

  ~ThreadPool() { close(); }

  int threads() const { return static_cast<int>(shares_.size()); }

  void run(int count, const std::function<void(int thread, int index)>& work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = &work;
      for (int i = 0; i < threads(); ++i) {
        shares_[i].next = static_cast<int>(int64_t{count} * i / threads());
        shares_[i].end = static_cast<int>(int64_t{count} * (i + 1) / threads());
      }
      busy_ = static_cast<int>(workers_.size());
      ++round_;
    }
    wake_.notify_all();
    share(0);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    work_ = nullptr;
  }

 private:
  // Apart from each other, as each thread writes to its own one.
  struct alignas(64) Share {
    std::atomic<int> next{0};
    int end = 0;
  };

  void close() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void share(int thread) {
    for (int i = 0; i < threads(); ++i) {
      Share& from = shares_[(thread + i) % threads()];
      for (int index = from.next++; index < from.end; index = from.next++) (*work_)(thread, index);
    }
  }

  void serve(int thread) {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return closing_ || round_ != seen; });
        if (closing_) return;
        seen = round_;
      }
      share(thread);
      std::lock_guard<std::mutex> lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<Share> shares_;  // one for each thread
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int, int)>* work_ = nullptr;
  int busy_ = 0;
  uint64_t round_ = 0;
  bool closing_ = false;
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
  void prepare() const {
    if (must_save(batch, env, trace())) save_pictures(batch, env, OneLane{});
    store_step_end(batch, env, workspace.trail.starts);
  }
  void draw() const { draw_env(batch, env, recording()); }
  void observe() const {
    cule::observe(batch, env, trace().plan, best_vector_level(), workspace.resizing);
  }
  void keep_final() const {
    // A lost life may report a termination without ending the episode (life_loss_info).
    if (!batch.terminated[env] && !batch.truncated[env]) return;
    const size_t bytes = observed_frame_bytes(batch.observation) * batch.observation.stack;
    memcpy(batch.final_observations + env * bytes, batch.observations + env * bytes, bytes);
  }
  void choose() const { choose_reset(batch, env, mask); }
  void restart() const {
    if (!trace().resets) return;
    const int64_t seed = seeds ? seeds[env] : kNoSeed;
    if (batch.pool.size)
      copy_pictures_from(batch, env, batch.pool, restart_record(batch, env, seed));
    else restart_exactly(batch, env, seed, core, workspace.place());
  }
  void observe_start() const {
    if (trace().plan.begins_episode) observe();
  }
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, const std::vector<int>& cpus) : pool_(threads, cpus) {}

  void step(const Batch& batch, void*) override {
    for_each_env(batch, [&](size_t env, Workspace& workspace) {
      run_step(batch, EnvPhases{batch, env, workspace, core_of(batch, env)});
    });
  }

  void reset(const Batch& batch, const uint8_t* mask, const int64_t* seeds, void*) override {
    for_each_env(batch, [&](size_t env, Workspace& workspace) {
      run_reset(EnvPhases{batch, env, workspace, core_of(batch, env), mask, seeds});
    });
  }

  bool plays_in_step(int) const override { return false; }

  void load_translation(const std::string&, const Predecoded*) override {
    throw std::logic_error("ROMs are translated for GPUs only");
  }

 private:
  template <class Work>
  void for_each_env(const Batch& batch, const Work& work) {
    // The workspaces may be too small if they were made for another batch.
    if (!workspaces_.empty() && !workspaces_[0]->fits(batch)) workspaces_.clear();
    while (static_cast<int>(workspaces_.size()) < pool_.threads())
      workspaces_.push_back(std::make_unique<Workspace>(batch));
    for (const auto& workspace : workspaces_) workspace->resizing.forget();
    while (codes_.size() < batch.num_groups) codes_.push_back(decode_group(batch, codes_.size()));
    pool_.run(batch.num_envs,
              [&](int thread, int env) { work(static_cast<size_t>(env), *workspaces_[thread]); });
  }

  Core core_of(const Batch& batch, size_t env) const { return {*codes_[batch.group[env]]}; }

  ThreadPool pool_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
  std::vector<std::unique_ptr<Code>> codes_;  // of each group
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
  with_first_session(batch, [&](auto& session) {
    session.env.frame_number = 0;
    start_with_noops(session, starts_with_fire(batch, 0), noops);
  });
}

void continue_pool_episode(const Batch& batch, int played, int noops) {
  with_first_session(batch, [&](auto& session) {
    play_noops(session, starts_with_fire(batch, 0), played, noops);
    end_of_start(session);
  });
}

void profile_play(const Batch& batch, int frames, ProfileEntry* entries) {
  constexpr uint32_t kLongestHold = 16;
  std::mt19937 random(1);
  with_first_session(batch, ProfilingCore{entries}, [&](auto& session) {
    session.start_episode();
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
