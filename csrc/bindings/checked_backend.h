// A backend for Python that checks each batch before it plays it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "bindings/checked_batch.h"
#include "kernels/backend.h"

namespace cule {

// A backend, and whether it runs on the host.
struct CheckedBackend {
  std::unique_ptr<Backend> backend;
  bool on_host;

  void step(CheckedBatch& batch, uintptr_t stream) {
    batch.check_envs(on_host);
    pybind11::gil_scoped_release release;
    backend->step(batch, reinterpret_cast<void*>(stream));
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
    pybind11::gil_scoped_release release;
    backend->reset(batch, reinterpret_cast<const uint8_t*>(mask_at),
                   reinterpret_cast<const int64_t*>(seeds_at), reinterpret_cast<void*>(stream));
  }
  bool plays_in_step(const pybind11::object& num_envs) const {
    return backend->plays_in_step(static_cast<int>(integer("num_envs", num_envs, 1)));
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
