// The launch interface: what a backend offers, whichever it is. All calls run on `stream` and
// return at once on a GPU; on the CPU they return when they are done.
#pragma once

#include <string>

#include "execution/profile.h"
#include "kernels/batch.h"

namespace cule {

class Backend {
 public:
  virtual ~Backend() = default;
  // One step of every env: `batch.actions` to `batch.observations`, rewards and endings, resets
  // included.
  virtual void step(const Batch& batch, void* stream) = 0;
  // Resets the envs whose byte in `mask` is set (null: all), after seeding those whose seed is not
  // kNoSeed (null: none).
  virtual void reset(const Batch& batch, const uint8_t* mask, const int64_t* seeds,
                     void* stream) = 0;
  // Whether the warps of a translated kernel for so many envs wait for each other, which it has to
  // be compiled for (kernels/cuda/play.cuh).
  virtual bool plays_in_step(int num_envs) const = 0;
  // From now on all envs play the ROM that `cubin` was compiled from, by its kernel
  // `play_translated` (cule/translation/), which reads `marked_ops`. Graphs that have captured
  // another one keep that.
  virtual void load_translation(const std::string& cubin, const Predecoded* marked_ops) = 0;
};

// `threads` is how many run at once. The caller owns what these return.
Backend* make_cpu_backend(int threads);
// `multiprocessors` is how many have the CPU part for themselves, each up to kMaxEnvsApart envs,
// or 0: it shares all that there are. Throws std::runtime_error in a build without CUDA.
constexpr int kMaxEnvsApart = 512;
Backend* make_cuda_backend(int device, int multiprocessors);
bool has_cuda();

// Host only, used to prepare boot states and reset pools with the same code that steps envs.
// Powers env 0 of `batch` on. Returns how many of 30 probed frames were longer than NTSC's.
int power_on_env(const Batch& batch);
// The console's RESET line and a whole new episode, for env 0.
void start_first_episode(const Batch& batch);
// Only the new episode, then FIRE where asked for and `noops` no-ops as ale-py's vector reset plays
// them.
void start_pool_episode(const Batch& batch, int noops);
// From what start_pool_episode left after `played` no-ops to what it would have left after `noops`.
void continue_pool_episode(const Batch& batch, int played, int noops);
// Episodes of env 0 with random actions, each held for a while; counts what is executed in
// `entries`, one for each byte of the ROM.
void profile_play(const Batch& batch, int frames, ProfileEntry* entries);

}  // namespace cule
