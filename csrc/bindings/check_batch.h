// Checks that a batch can be played: numbers are in range, no address is missing, and the caller
// has said that the memory at each address is at least as large as the numbers need. On the host,
// that memory must also exist.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "bindings/batch_rows.h"
#include "common/platform.h"
#include "console/check_config.h"
#include CULE_SYSTEM

namespace cule {

// Whether all pages of some memory are mapped in this process.
inline bool is_mapped(const void* begin, uint64_t bytes) {
  const auto first = reinterpret_cast<uint64_t>(begin);
  uint64_t end;
  return !__builtin_add_overflow(first, bytes, &end) && are_pages_mapped(first, end);
}

class BatchCheck {
 public:
  // `bytes` has the size of the memory at each address of the batch, by the name of its field.
  BatchCheck(const Batch& batch, const std::map<std::string, uint64_t>& bytes, Use use)
      : batch_(batch), bytes_(bytes), use_(use) {}

  void all() const {
    numbers();
    strides();
    for (const BatchArray& array : arrays_of(batch_, use_)) {
      const bool lasts = array.life != Life::kStep && array.life != Life::kInput &&
                         array.life != Life::kOutput;
      if (array.needed || (array.begin && (use_.envs || lasts))) {
        memory(array.name, array.begin, array.bytes());
      }
    }
    if (!use_.on_gpu) cartridges();  // the host cannot read a GPU's memory
  }

 private:
  const Batch& batch_;
  const std::map<std::string, uint64_t>& bytes_;
  const Use use_;

  static void range(const char* name, int64_t value, int64_t least, int64_t most) {
    expect_range((std::string("a batch's ") + name).c_str(), value, least, most);
  }

  void numbers() const {
    const Batch& b = batch_;
    const Use use = use_;
#define CULE_COUNT(name, member, checked, least, most) \
  if (checked) range(#name, static_cast<int64_t>(b.member), least, most);
    CULE_BATCH_COUNTS(CULE_COUNT)
#undef CULE_COUNT
    if (!use.envs) return;
#define CULE_OPTION(name, least, most) range(#name, b.options.name, least, most);
#define CULE_ANY(name)
    CULE_STEP_OPTIONS(CULE_OPTION, CULE_ANY, CULE_ANY)
#undef CULE_OPTION
#undef CULE_ANY
    const int32_t channels = b.observation.channels;
    if (channels != 1 && channels != 3) {
      throw std::invalid_argument("expected channels to be 1 or 3, got " +
                                  std::to_string(channels));
    }
  }

  void strides() const {
    const uint64_t word_stride = batch_.records.word_stride,
                   env_stride = batch_.records.env_stride,
                   envs = static_cast<uint64_t>(batch_.num_envs);
    if ((word_stride == 1 && env_stride == kRecordWords) ||
        (word_stride == envs && env_stride == 1)) {
      return;
    }
    throw std::invalid_argument(
        "expected a batch's record_word_stride and record_env_stride to be 1 and " +
        std::to_string(kRecordWords) + " or " + std::to_string(envs) + " and 1, got " +
        std::to_string(word_stride) + " and " + std::to_string(env_stride));
  }

  void memory(const char* name, const void* begin, uint64_t bytes) const {
    if (bytes == 0) return;
    const auto known = bytes_.find(name);
    const uint64_t there = known == bytes_.end() ? 0 : known->second;
    if (begin && bytes <= there && (use_.on_gpu || is_mapped(begin, bytes))) return;
    throw std::invalid_argument(std::string("expected a batch's ") + name +
                                " to be the address of " + std::to_string(bytes) + " bytes, got " +
                                std::to_string(there) + " at " +
                                std::to_string(reinterpret_cast<uintptr_t>(begin)));
  }

  void cartridges() const {
    for (int32_t env = 0; env < batch_.num_envs; ++env)
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
      memory("predecoded", batch_.predecoded, product({bytes, sizeof(Predecoded)}));
    }
  }
};

}  // namespace cule
