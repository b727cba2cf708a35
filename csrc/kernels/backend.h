// The interface of a backend. On a GPU calls put their work on `stream` and return at once; on the
// CPU they return when the work is done.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "execution/profile.h"
#include "kernels/batch.h"

namespace cule {

// A step or a reset of some envs that the CPU backend's threads play while the caller goes on.
struct Flight {
  std::vector<int> envs;        // each of them once
  bool resets = false;
  std::vector<int64_t> seeds;   // of a reset: as Backend::reset has them; empty: none
  bool singly = false;          // the envs are taken as they land; else one waits for all of them
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Plays one step of every env, from `batch.actions` to `batch.observations`, rewards and endings.
  // Also resets envs, as `batch.options.autoreset` says.
  virtual void step(const Batch& batch, void* stream) = 0;
  // Resets the envs whose byte in `mask` is set (null: all), after seeding those whose seed is not
  // kNoSeed (null: none).
  virtual void reset(const Batch& batch, const uint8_t* mask, const int64_t* seeds,
                     void* stream) = 0;
  // Copies memory of the backend's device.
  virtual void copy(void* to, const void* from, size_t bytes, void* stream) = 0;
  // GPU only. What comes on the stream `later` from here on waits for what is on `earlier` now.
  virtual void follow(void* /*earlier*/, void* /*later*/) {}
  // GPU only. Puts start states in the place of states that playing cannot produce
  // (kernels/mend.h).
  virtual void mend_states(const Batch&, void* /*stream*/) {
    throw std::logic_error("states are mended on a GPU only, as a CPU refuses them");
  }
  // Whether the warps of a translated kernel for `num_envs` envs wait for each other. The kernel
  // must be compiled for one or the other (kernels/cuda/play.cuh).
  virtual bool plays_in_step(int num_envs) const = 0;
  // GPU only. From the next step on another number of multiprocessors is reserved for the CPU part
  // (see make_cuda_backend). `ordered` says whether envs of a translated game that are alike are
  // together (kernels/cuda/order.cuh); without a value: as PlayChoice finds to be faster. Changes
  // nothing, and returns false, if plays_in_step would be another.
  virtual bool reserve(int /*num_envs*/, int /*multiprocessors*/, std::optional<bool> /*ordered*/) {
    return false;
  }

  // CPU only. Starts a flight and returns its number. Until an env has been landed or taken, only
  // the threads may use what belongs to it. Throws std::invalid_argument if an env is in flight
  // already.
  virtual uint64_t fly(const Batch&, Flight) { throw std::logic_error(kFliesOnCpu); }
  // Waits until all envs of a flight have played. Throws what went wrong in a thread, and then has
  // ended the flight.
  virtual void wait(uint64_t) { throw std::logic_error(kFliesOnCpu); }
  // Whether `wait` would not wait.
  virtual bool is_done(uint64_t) { throw std::logic_error(kFliesOnCpu); }
  // Ends a flight. Waits for it if nobody has.
  virtual void land(uint64_t) { throw std::logic_error(kFliesOnCpu); }
  // Waits until `count` envs of flights that land singly have played, and ends their flights.
  // Returns the envs, in the order in which they have played.
  virtual std::vector<int> take(int) { throw std::logic_error(kFliesOnCpu); }
  // Waits until no thread plays, and ends all flights.
  virtual void finish() {}
  // How many envs are in flight.
  virtual int in_flight() const { return 0; }

  // From now on all envs are played by the kernel `play_translated` in `cubin`, which was compiled
  // from their ROM (cule/translation/). The kernel reads `marked_ops`. A graph goes on with the
  // kernel that it captured.
  virtual void load_translation(const std::string& cubin, const Predecoded* marked_ops) = 0;

 private:
  static constexpr const char* kFliesOnCpu = "envs fly on a CPU only, as a GPU's steps never wait";
};

// `threads` is how many threads run at once, one of them the caller's. The others are pinned:
// thread i to CPU cpus[i]; if there are none, to no CPU. Throws std::runtime_error if the system
// refuses. The caller owns what these functions return.
Backend* make_cpu_backend(int threads, const std::vector<int>& cpus = {});
// `multiprocessors` is how many multiprocessors are reserved for the CPU part, for up to
// kMaxEnvsApart envs each. If it is 0, the CPU part shares all of them with other work. Throws
// std::runtime_error in a build without CUDA.
constexpr int kMaxEnvsApart = 512;
Backend* make_cuda_backend(int device, int multiprocessors);
bool has_cuda();

// The functions below run on the host only, for env 0 of `batch`. They prepare boot states and
// reset pools with the same code that steps envs.

// Powers the console on. Returns how many of 30 frames had more scanlines than NTSC's.
int power_on_env(const Batch& batch);
// Pulls the console's RESET line and starts a whole new episode.
void start_first_episode(const Batch& batch);
// Starts a new episode, and plays its no-ops, and the FIRE before them if there is one
// (kernels/episode_start.h). `noops` is the number that a reset would draw.
void start_pool_episode(const Batch& batch, int noops);
// Goes on from the state that start_pool_episode left with the number `played`, to the state that
// it would have left with `noops`.
void continue_pool_episode(const Batch& batch, int played, int noops);
// Plays what an episode's start has after its no-ops.
void end_pool_episode(const Batch& batch, int noops);
// Plays episodes with random actions, each held for some frames: a new one, unless `from_start` is
// false. Counts in `entries` what is executed: one entry for each byte of the ROM, and one for code
// that is elsewhere.
void profile_play(const Batch& batch, int frames, bool from_start, uint32_t seed,
                  ProfileEntry* entries);

}  // namespace cule
