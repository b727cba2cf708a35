// A backend for Python that checks each batch before it plays it.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/checked_batch.h"
#include "kernels/backend.h"

namespace cule {

// A backend, and whether it runs on the host.
struct CheckedBackend {
  std::unique_ptr<Backend> backend;
  bool on_host;
  bool sent = false;   // whether a step of all envs has been sent and not received
  uint64_t whole = 0;  // its flight, on the host
  void* last_stream = nullptr;  // of the last call, on a GPU

  void step(CheckedBatch& batch, uintptr_t stream) {
    batch.check_envs(on_host);
    last_stream = reinterpret_cast<void*>(stream);
    pybind11::gil_scoped_release release;
    backend->step(batch, last_stream);
  }
  void reset(CheckedBatch& batch, const pybind11::object& mask, const pybind11::object& seeds,
             uintptr_t stream) {
    const uintptr_t mask_at = address("mask", mask, 1),
                    seeds_at = address("seeds", seeds, alignof(int64_t));
    batch.check_envs(on_host);
    const auto envs = static_cast<uint64_t>(batch.num_envs);
    if (on_host &&
        ((mask_at && !is_mapped(reinterpret_cast<void*>(mask_at), envs)) ||
         (seeds_at && !is_mapped(reinterpret_cast<void*>(seeds_at), envs * sizeof(int64_t))))) {
      throw std::invalid_argument("expected mask and seeds to be addresses of " +
                                  std::to_string(envs) + " values or 0, got " + text_of(mask) +
                                  " and " + text_of(seeds));
    }
    last_stream = reinterpret_cast<void*>(stream);
    pybind11::gil_scoped_release release;
    backend->reset(batch, reinterpret_cast<const uint8_t*>(mask_at),
                   reinterpret_cast<const int64_t*>(seeds_at), last_stream);
  }
  // Starts a step of all envs. It is in flight from this moment on: no signal can come in between.
  void send(CheckedBatch& batch, uintptr_t stream) {
    batch.check_envs(on_host);
    if (sent)
      throw std::runtime_error("expected a step to be received before the next one is sent");
    Flight all;
    for (int env = 0; on_host && env < batch.num_envs; ++env) all.envs.push_back(env);
    last_stream = reinterpret_cast<void*>(stream);
    pybind11::gil_scoped_release release;
    if (on_host) whole = backend->fly(batch, std::move(all));
    else backend->step(batch, last_stream);
    sent = true;
  }
  // Waits for what was sent; on a GPU its stream does. Afterwards it can be received.
  void wait() {
    expect_sent();
    if (!on_host) return;
    pybind11::gil_scoped_release release;
    try {
      backend->wait(whole);
    } catch (...) {
      sent = false;
      throw;
    }
  }
  void receive() {
    expect_sent();
    if (on_host) backend->land(whole);
    sent = false;
  }
  void expect_sent() const {
    if (!sent) throw std::runtime_error("expected a step that has been sent, got none");
  }

  // Flights of some envs. `envs` has int32 numbers, and `seeds` is None or an int64 for each env of
  // the batch.
  uint64_t start(CheckedBatch& batch, const pybind11::object& envs, bool resets,
                 const pybind11::object& seeds, bool singly) {
    expect_host("start");
    batch.check_envs(true);
    Flight flight;
    const Bytes numbers("envs", envs);
    for (size_t i = 0; i < numbers.count(sizeof(int32_t)); ++i)
      flight.envs.push_back(numbers.at<int32_t>(i));
    if (!seeds.is_none()) {
      const Bytes given("seeds", seeds);
      const size_t count = given.count(sizeof(int64_t));
      if (count != static_cast<size_t>(batch.num_envs)) {
        throw std::invalid_argument("expected a seed for each of the " +
                                    std::to_string(batch.num_envs) + " envs, got " +
                                    std::to_string(count));
      }
      for (size_t i = 0; i < count; ++i) flight.seeds.push_back(given.at<int64_t>(i));
    }
    flight.resets = resets;
    flight.singly = singly;
    pybind11::gil_scoped_release release;
    return backend->fly(batch, std::move(flight));
  }
  static uint64_t number_of(const pybind11::object& flight) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    return static_cast<uint64_t>(integer("flight", flight, 0, kMost));
  }
  bool is_done(const pybind11::object& flight) {
    expect_host("is_done");
    return backend->is_done(number_of(flight));
  }
  void wait_for(const pybind11::object& flight) {
    expect_host("wait_for");
    const uint64_t number = number_of(flight);
    pybind11::gil_scoped_release release;
    backend->wait(number);
    backend->land(number);
  }
  std::vector<int> take(const pybind11::object& count) {
    expect_host("take");
    const auto wanted = static_cast<int>(integer("count", count, 0));
    pybind11::gil_scoped_release release;
    return backend->take(wanted);
  }
  void finish() {
    pybind11::gil_scoped_release release;
    backend->finish();
    sent = false;
  }
  // On a GPU: what comes on `later` from here on waits for what is on `earlier`.
  void follow(void* earlier, void* later) const {
    if (!on_host && earlier != later) backend->follow(earlier, later);
  }
  // What comes on `stream` waits for the last call.
  void follow_last(void* stream) {
    follow(last_stream, stream);
    last_stream = stream;
  }
  bool in_flight() const { return sent || backend->in_flight() > 0; }
  void expect_host(const char* what) const {
    if (on_host) return;
    throw std::invalid_argument(std::string("expected the CPU backend, whose envs fly, for ") +
                                what + "(), got the CUDA backend");
  }

  bool plays_in_step(const pybind11::object& num_envs) const {
    return backend->plays_in_step(static_cast<int>(integer("num_envs", num_envs, 1)));
  }
  // `ordered`: whether envs that are alike are played together; None: as it finds to be faster.
  bool reserve(const pybind11::object& num_envs, const pybind11::object& multiprocessors,
               std::optional<bool> ordered) {
    return backend->reserve(static_cast<int>(integer("num_envs", num_envs, 1)),
                            static_cast<int>(integer("multiprocessors", multiprocessors, 0)),
                            ordered);
  }
  void load_translation(const pybind11::bytes& cubin, const pybind11::object& marked_ops) {
    if (on_host)
      throw std::invalid_argument(
          "expected the CUDA backend, as games are translated for GPUs only, got the CPU's");
    const std::string code = cubin;
    const uintptr_t operations = address("marked_ops", marked_ops, alignof(Predecoded));
    pybind11::gil_scoped_release release;
    backend->load_translation(code, reinterpret_cast<const Predecoded*>(operations));
  }
};

}  // namespace cule
