// The rows of kernels/batch_fields.h as data: the address, type, shape and lifetime of each array.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/batch.h"
#include "kernels/tia_state.h"

namespace cule {

constexpr int64_t kMaxEnvs = 1 << 24;  // also the most groups and spare buffers
constexpr int64_t kMaxBufferEntries = 1 << 26;
constexpr int64_t kMaxPatches = 256, kMostObjects = 1024;
constexpr int64_t kMaxFrameskip = 10'000, kMaxNoops = 10'000, kMaxStartStates = 10'000;

// A product, or the largest number if it overflows.
inline uint64_t product(const std::vector<uint64_t>& factors) {
  uint64_t result = 1;
  for (uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return ~uint64_t{0};
  }
  return result;
}

// How many states episodes start from, for all groups together.
inline uint64_t start_states(const Batch& b, const ResetPool& pool) {
  return product({b.num_groups, static_cast<uint64_t>(pool.size)});
}
// How many pooled frames there are: `envs_per_pooled` envs share one.
inline uint64_t pooled_frames(const Batch& b) {
  const uint64_t sharing = b.envs_per_pooled ? b.envs_per_pooled : 1;
  return (static_cast<uint64_t>(b.num_envs) + sharing - 1) / sharing;
}

// The dtype of an array for numpy and torch. An array of structs is an array of bytes.
template <class T>
constexpr const char* kDtype = "uint8";
template <>
inline constexpr const char* kDtype<uint32_t> = "uint32";
template <>
inline constexpr const char* kDtype<int16_t> = "int16";
template <>
inline constexpr const char* kDtype<int32_t> = "int32";
template <>
inline constexpr const char* kDtype<float> = "float32";

inline const char* name_of(Life life) {
  constexpr const char* kNames[] = {"constant", "state", "arranged", "step", "input", "output"};
  return kNames[static_cast<int>(life)];
}

struct BatchArray {
  const char* name;
  const char* dtype;
  Life life;
  bool needed;
  uint64_t element_bytes;       // of the dtype
  std::vector<uint64_t> shape;  // for structs, the last axis is a struct's bytes
  const void* begin;

  uint64_t bytes() const { return product({product(shape), element_bytes}); }
};

template <class T>
BatchArray batch_array(const char* name, Life life, bool needed, std::vector<uint64_t> shape,
                       T* begin) {
  using Element = std::remove_const_t<T>;
  if (std::is_class_v<Element>) shape.push_back(sizeof(Element));
  return {name, kDtype<Element>, life, needed, std::is_class_v<Element> ? 1 : sizeof(Element),
          shape, begin};
}

template <class... Numbers>
std::vector<uint64_t> shape_of(Numbers... numbers) {
  return {static_cast<uint64_t>(numbers)...};
}

// All arrays, in the order of their rows.
inline std::vector<BatchArray> arrays_of(const Batch& b, Use use) {
  std::vector<BatchArray> found;
#define CULE_PART(name, member, life, needed, ...) \
  found.push_back(batch_array(#name, Life::life, needed, shape_of(__VA_ARGS__), b.member));
#define CULE_ARRAY(type, name, ...) CULE_PART(name, name, __VA_ARGS__)
  CULE_BATCH_ARRAYS(CULE_ARRAY, CULE_PART)
#undef CULE_PART
#undef CULE_ARRAY
  return found;
}

}  // namespace cule
