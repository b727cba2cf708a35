// Checks that a batch can be played: numbers are in range, no address is missing, and the memory at
// each address is as large as these numbers need, by the size that the caller gave. On the host,
// that memory must also exist.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>

#include "console/check_config.h"
#include "kernels/batch.h"
#include "kernels/segment_starts.h"

namespace cule {

constexpr int64_t kMostFrameskip = 10'000, kMostNoops = 10'000;  // as in cule/env/settings.py

// A product, or the largest number if it overflows.
inline uint64_t product(std::initializer_list<uint64_t> factors) {
  uint64_t result = 1;
  for (uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return ~uint64_t{0};
  }
  return result;
}

// Whether all pages of some memory belong to this process: msync fails for others.
inline bool is_mapped(const void* begin, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uint64_t>(begin) / page * page;
  uint64_t end;
  if (__builtin_add_overflow(reinterpret_cast<uint64_t>(begin), bytes, &end)) return false;
  return msync(reinterpret_cast<void*>(first), end - first, MS_ASYNC) == 0;
}

class BatchCheck {
 public:
  // `bytes` has the size of the memory at each of the batch's addresses, by the field's name.
  BatchCheck(const Batch& batch, const std::map<std::string, uint64_t>& bytes, bool on_host)
      : batch_(batch),
        bytes_(bytes),
        on_host_(on_host),
        envs_(static_cast<uint64_t>(batch.num_envs)) {}

  // What everything that plays needs.
  void consoles() const {
    range("num_envs", batch_.num_envs, 1, kMost);
    range("num_groups", batch_.num_groups, 1, kMost);
    range("picture_bytes", batch_.picture_bytes, 1, kMostHeight * kLinePixels);
    range("buffer_capacity", batch_.buffer_capacity, 1, 1 << 26);
    range("power_on_count", batch_.power_on.count, 1, 1 << 26);
    const uint64_t groups = batch_.num_groups, word_stride = batch_.records.word_stride,
                   env_stride = batch_.records.env_stride;
    if (!(word_stride == 1 && env_stride == kRecordWords) &&
        !(word_stride == envs_ && env_stride == 1)) {
      throw std::invalid_argument(
          "expected a batch's record_word_stride and record_env_stride to be 1 and " +
          std::to_string(kRecordWords) + " or " + std::to_string(envs_) + " and 1, got " +
          std::to_string(word_stride) + " and " + std::to_string(env_stride));
    }
    memory("group", batch_.group, product({envs_, 4}));
    memory("configs", batch_.configs, product({groups, sizeof(ConsoleConfig)}));
    memory("action_ids", batch_.action_ids, product({groups, kNumActions}));
    memory("operations", batch_.operations, 256 * sizeof(MicroOp));
    memory("power_on_numbers", batch_.power_on.numbers, product({batch_.power_on.count, 4}));
    memory("records", batch_.records.words, product({envs_, sizeof(EnvRecord)}));
    memory("ram", batch_.ram, product({envs_, kRamBytes}));
    memory("cartridge_bytes", batch_.cartridge_bytes, product({envs_, kCartridgeBytes}));
    memory("pictures", batch_.pictures, product({envs_, 2, batch_.picture_bytes}));
    memory("row_of", batch_.row_of, product({envs_, 2, Pictures::kRows}));
    optional("env_random", batch_.env_random, random_bytes());
    cartridges();
  }

  // What steps and resets need, too.
  void envs() const {
    consoles();
    const StepOptions& options = batch_.options;
    const ObservationFormat& observation = batch_.observation;
    range("frameskip", options.frameskip, 1, kMostFrameskip);
    range("max_frames", options.max_frames, 1, INT32_MAX);
    range("noop_max", options.noop_max, 0, kMostNoops);
    range("autoreset", static_cast<int64_t>(options.autoreset), 0, 2);
    range("observation_height", observation.height, 1, INT32_MAX);
    range("observation_width", observation.width, 1, INT32_MAX);
    range("stack", observation.stack, 1, INT32_MAX);
    if (observation.channels != 1 && observation.channels != 3) {
      throw std::invalid_argument("expected channels to be 1 or 3, got " +
                                  std::to_string(observation.channels));
    }
    const auto channels = static_cast<uint64_t>(observation.channels);
    const uint64_t observed = product({envs_, static_cast<uint64_t>(observation.stack),
                                       static_cast<uint64_t>(observation.height),
                                       static_cast<uint64_t>(observation.width), channels});
    const bool shares_pooled = !on_host_ && !batch_.keeps_pooled;
    const uint64_t sharing = batch_.envs_per_pooled;
    range("envs_per_pooled", batch_.envs_per_pooled, 1, shares_pooled ? kEnvsPerPooled : 1);
    memory("pooled", batch_.pooled,
           product({(envs_ + sharing - 1) / sharing, batch_.picture_bytes, channels}));
    memory("traces", batch_.traces, product({envs_, sizeof(StepTrace)}));
    memory("palettes", observation.palettes, 2 * 256 * channels);
    memory("resamples", observation.resamples, product({batch_.num_groups, sizeof(Resample)}));
    memory("observations", batch_.observations, observed);
    if (options.autoreset == AutoresetMode::kSameStep)
      memory("final_observations", batch_.final_observations, observed);
    if (!on_host_) {
      const uint64_t starts = static_cast<uint64_t>(options.frameskip) * kSegments + 1;
      const SpareBuffers& spares = batch_.spares;
      memory("buffers", batch_.buffers, product({envs_, batch_.buffer_capacity, 4}));
      range("spare_count", spares.count, 1, kMost);
      range("spare_capacity", spares.capacity, batch_.buffer_capacity, 1 << 26);
      memory("spare_buffers", spares.entries, product({spares.count, spares.capacity, 4}));
      memory("spares_taken", spares.taken, sizeof(*spares.taken));
      memory("segments", batch_.segments, product({starts, kSegmentWords, envs_, 4}));
    }
    outputs();
    pools();
  }

 private:
  static constexpr int64_t kMost = 1 << 24;  // envs, and what they share
  const Batch& batch_;
  const std::map<std::string, uint64_t>& bytes_;
  const bool on_host_;
  const uint64_t envs_;

  static void range(const char* name, int64_t value, int64_t least, int64_t most) {
    expect_range((std::string("a batch's ") + name).c_str(), value, least, most);
  }

  void memory(const char* name, const void* begin, uint64_t bytes) const {
    const auto known = bytes_.find(name);
    const uint64_t there = known == bytes_.end() ? 0 : known->second;
    if (begin && bytes <= there && (!on_host_ || is_mapped(begin, bytes))) return;
    throw std::invalid_argument(std::string("expected a batch's ") + name +
                                " to be the address of " + std::to_string(bytes) + " bytes, got " +
                                std::to_string(there) + " at " +
                                std::to_string(reinterpret_cast<uintptr_t>(begin)));
  }
  void optional(const char* name, const void* begin, uint64_t bytes) const {
    if (begin) memory(name, begin, bytes);
  }

  uint64_t random_bytes() const { return product({Mt19937::kStateWords, envs_, 4}); }

  void outputs() const {
    const uint64_t words = product({envs_, 4});
    memory("actions", batch_.actions, words);
    optional("strengths", batch_.strengths, words);
    optional("actions_b", batch_.actions_b, words);
    optional("strengths_b", batch_.strengths_b, words);
    memory("rewards", batch_.rewards, words);
    memory("raw_rewards", batch_.raw_rewards, words);
    memory("terminated", batch_.terminated, envs_);
    memory("truncated", batch_.truncated, envs_);
    memory("lives", batch_.lives, words);
    memory("frame_numbers", batch_.frame_numbers, words);
    memory("episode_frame_numbers", batch_.episode_frame_numbers, words);
    memory("faults", batch_.faults, words);
  }

  void pools() const {
    range("pool_size", batch_.pool.size, 0, 10'000);
    if (batch_.pool.size) return states("pool", batch_.pool);
    range("boot_size", batch_.boot.size, 1, 1);
    states("boot", batch_.boot);
    memory("noop_random", batch_.noop_random, random_bytes());
  }

  void states(const std::string& prefix, const ResetPool& pool) const {
    const uint64_t count = product({batch_.num_groups, static_cast<uint64_t>(pool.size)});
    memory((prefix + "_records").c_str(), pool.records, product({count, sizeof(EnvRecord)}));
    memory((prefix + "_ram").c_str(), pool.ram, product({count, kRamBytes}));
    memory((prefix + "_cartridge_bytes").c_str(), pool.cartridge_bytes,
           product({count, kCartridgeBytes}));
    memory((prefix + "_pictures").c_str(), pool.pictures,
           product({count, 2, batch_.picture_bytes}));
  }

  // A GPU's cannot be read here.
  void cartridges() const {
    memory("roms", batch_.roms, 0);
    memory("micro_ops", batch_.micro_ops, 0);
    if (!on_host_) return;
    for (uint64_t env = 0; env < envs_; ++env)
      range("group", batch_.group[env], 0, int64_t{batch_.num_groups} - 1);
    for (uint32_t group = 0; group < batch_.num_groups; ++group) {
      const ConsoleConfig& config = batch_.configs[group];
      if (const char* part = find_misfit(config, batch_.picture_bytes)) {
        throw std::invalid_argument(
            "expected a batch's configs as make_config makes them, got number " +
            std::to_string(group) + " with an impossible value in " + part);
      }
      const uint64_t bytes = uint64_t{config.rom_offset} + config.rom_bytes + 1;
      memory("roms", batch_.roms, bytes);
      memory("micro_ops", batch_.micro_ops, product({bytes, sizeof(MicroOp)}));
    }
  }
};

}  // namespace cule
