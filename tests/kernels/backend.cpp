// The CUDA backend for Python's ctypes. If a function fails, it writes a message to `error`, which
// has room for kErrorBytes.
#include <cstdio>
#include <exception>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/play_choice.cuh"
#include "simulator.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kErrorBytes = 1024;

template <class Body>
void guarded(char* error, const Body& body) {
  try {
    body();
    *error = '\0';
  } catch (const std::exception& problem) {
    std::snprintf(error, kErrorBytes, "%s", problem.what());
  }
}

}  // namespace

EXPORTED size_t error_bytes() { return kErrorBytes; }

EXPORTED void set_device(int multiprocessors, uint64_t seed, bool together) {
  simulated::settings() = {multiprocessors, seed, together};
}

EXPORTED void set_stream(float milliseconds, bool busy, bool captured) {
  simulated::stream() = {milliseconds, busy, captured};
}

EXPORTED cule::PlayChoice* make_choice(int fastest) { return new cule::PlayChoice(fastest); }
EXPORTED void free_choice(cule::PlayChoice* choice) { delete choice; }
EXPORTED int begin_choice(cule::PlayChoice* choice) { return choice->begin(nullptr); }
EXPORTED void end_choice(cule::PlayChoice* choice) { choice->ended(nullptr); }

EXPORTED cule::Backend* make_backend(int reserved, char* error) {
  cule::Backend* made = nullptr;
  guarded(error, [&] { made = cule::make_cuda_backend(0, reserved); });
  return made;
}

EXPORTED void free_backend(cule::Backend* backend) { delete backend; }

EXPORTED void step(cule::Backend* backend, const cule::Batch* batch, char* error) {
  guarded(error, [&] { backend->step(*batch, nullptr); });
}

EXPORTED void reset(cule::Backend* backend, const cule::Batch* batch, const uint8_t* mask,
                    const int64_t* seeds, char* error) {
  guarded(error, [&] { backend->reset(*batch, mask, seeds, nullptr); });
}

EXPORTED bool plays_in_step(const cule::Backend* backend, int num_envs) {
  return backend->plays_in_step(num_envs);
}

EXPORTED int lanes_played() { return simulated::lanes_played(); }

EXPORTED bool reserve(cule::Backend* backend, int num_envs, int multiprocessors, int ordered) {
  return backend->reserve(num_envs, multiprocessors,
                          ordered < 0 ? std::nullopt : std::optional<bool>(ordered != 0));
}
EXPORTED void load_translation(cule::Backend* backend, const char* path,
                               const cule::Predecoded* marked_ops, char* error) {
  guarded(error, [&] { backend->load_translation(path, marked_ops); });
}
