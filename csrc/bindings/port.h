// A port: compiled programs step and reset a batch through it, from threads of their own and
// without Python (bindings/calls.h). There are two kinds.
//
// At an env's own port a call copies actions to the batch's memory, and results from there.
// At a port with states elsewhere a batch has no envs of its own: their states are in the call's
// buffers, so that a call copies nothing. What it is given may be anything, and is checked.
//
// A program names a port by a number that no other port has, in this process or in another one, as
// programs may outlive envs, and are kept on disk.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/calls.h"
#include "bindings/checked_backend.h"
#include "bindings/guard.h"
#include "kernels/mend.h"

namespace cule {

// The bytes of a batch's pointer to the array of this name, from the batch's beginning.
inline size_t offset_of_array(const std::string& name) {
#define CULE_PART(part, member, ...) \
  if (name == #part) return offsetof(Batch, member);
#define CULE_ARRAY(type, array, ...) CULE_PART(array, array)
  CULE_BATCH_ARRAYS(CULE_ARRAY, CULE_PART)
#undef CULE_PART
#undef CULE_ARRAY
  throw std::invalid_argument("expected the name of a batch's array, got " + name);
}

// An array that a call brings or takes.
struct PortArray {
  std::string name;
  size_t offset;  // of its address in the batch
  uint64_t bytes;
};

// What a port is for, as Python says it.
struct PortUse {
  std::vector<std::string> in, reset_out, step_out;  // arrays; `in` is of a step
  bool elsewhere;
  int32_t device;         // the GPU's number; -1: the CPU
  int32_t actions;        // how many a player has; 0: they are not checked
  uintptr_t first_seeds;  // int64 of each env, of a first reset without seeds
};

inline std::runtime_error no_open_env() {
  return std::runtime_error("expected an open env, got a compiled program's call after close(), or "
                            "in a fork of the process that made the env");
}

class Port {
 public:
  Port(CheckedBackend& backend, CheckedBatch& batch, Guard& guard, const PortUse& use)
      : backend_(backend), batch_(batch), guard_(guard), use_(use) {
    const std::vector<BatchArray> arrays = arrays_of(batch, {true, !backend.on_host});
    in_ = find(arrays, use.in);
    reset_out_ = find(arrays, use.reset_out);
    step_out_ = find(arrays, use.step_out);
  }

  // A thread of the program's calls it.
  void play(const PortCall& call) {
    const std::lock_guard<std::mutex> turn(turn_);
    expect_usable(call);
    const Guard::Program inside(guard_);
    if (backend_.in_flight())
      throw std::runtime_error("expected step_wait() after step_async(), got a compiled program's "
                               "call while a step is in flight");
    // torch's work is on its default stream.
    backend_.follow(nullptr, call.stream);
    backend_.follow_last(call.stream);
    if (use_.elsewhere) play_elsewhere(call);
    else play_own(call);
    backend_.follow(call.stream, nullptr);
  }

  // Waits for a call that is being played. Later ones are refused.
  void close() {
    const std::lock_guard<std::mutex> turn(turn_);
    closed_ = true;
  }

  // A fork has none of the threads that could play, but may have a mutex that one of them held.
  bool is_of_this_process() const { return process_number() == process_; }

 private:
  static std::vector<PortArray> find(const std::vector<BatchArray>& arrays,
                                     const std::vector<std::string>& names) {
    std::vector<PortArray> found;
    for (const std::string& name : names) {
      const size_t offset = offset_of_array(name);
      const auto array = std::find_if(arrays.begin(), arrays.end(),
                                      [&](const BatchArray& one) { return one.name == name; });
      found.push_back({name, offset, array->bytes()});
    }
    return found;
  }

  void expect_usable(const PortCall& call) const {
    if (closed_) throw no_open_env();
    if (call.device != use_.device)
      throw std::invalid_argument("expected a program on " + device_name(use_.device) +
                                  ", where the envs are, got one on " + device_name(call.device));
  }
  static std::string device_name(int32_t device) {
    return device < 0 ? "the CPU" : "cuda:" + std::to_string(device);
  }

  static const CallBuffer& buffer(const CallBuffer* all, uint64_t count, uint64_t index,
                                  const char* name, uint64_t bytes) {
    if (index < count && all[index].bytes == bytes) return all[index];
    throw std::invalid_argument(std::string("expected a buffer of ") + std::to_string(bytes) +
                                " bytes for " + name + ", got " +
                                (index < count ? std::to_string(all[index].bytes) : "none"));
  }
  static const CallBuffer& input(const PortCall& call, uint64_t index, const PortArray& array) {
    return buffer(call.in, call.num_in, index, array.name.c_str(), array.bytes);
  }
  static const CallBuffer& output(const PortCall& call, uint64_t index, const PortArray& array) {
    return buffer(call.out, call.num_out, index, array.name.c_str(), array.bytes);
  }
  static void*& pointer(Batch& batch, const PortArray& array) {
    return *reinterpret_cast<void**>(reinterpret_cast<char*>(&batch) + array.offset);
  }

  void check_actions(const PortArray& array, const void* data) const {
    const auto count = static_cast<size_t>(batch_.num_envs);
    if (!backend_.on_host) return;  // a GPU plays a wrong number as a no-op
    if (array.name == "actions" && use_.actions) {
      const auto* values = static_cast<const int32_t*>(data);
      const auto [least, most] = std::minmax_element(values, values + count);
      if (*least < 0 || *most >= use_.actions)
        throw std::invalid_argument("expected actions from 0 to " +
                                    std::to_string(use_.actions - 1) + ", got values from " +
                                    std::to_string(*least) + " to " + std::to_string(*most));
    }
    if (array.name == "strengths") {
      const auto* values = static_cast<const float*>(data);
      if (!std::all_of(values, values + count, [](float one) { return std::isfinite(one); }))
        throw std::invalid_argument("expected actions to be finite, got NaN or infinity");
      const auto [least, most] = std::minmax_element(values, values + count);
      if (*least < 0 || *most > 1)
        throw std::invalid_argument("expected actions with a radius from 0 to 1, got " +
                                    std::to_string(*least) + " to " + std::to_string(*most));
    }
  }

  // The first buffers, in and out, are the program's handle, which orders its calls.
  void play_own(const PortCall& call) {
    const PortArray handle{"the handle", 0, sizeof(uint32_t)};
    if (call.num_in && call.in[0].bytes > handle.bytes)
      throw std::invalid_argument("expected the functions of xla() outside jax.vmap, as their envs "
                                  "have one state, got a batch of " +
                                  std::to_string(call.in[0].bytes / handle.bytes) + " calls");
    const void* before = input(call, 0, handle).data;
    void* after = output(call, 0, handle).data;
    if (call.steps) step_own(call);
    else reset_own(call);
    const std::vector<PortArray>& out = call.steps ? step_out_ : reset_out_;
    Backend& backend = *backend_.backend;
    for (size_t i = 0; i < out.size(); ++i) {
      backend.copy(output(call, i + 1, out[i]).data, pointer(batch_, out[i]), out[i].bytes,
                   call.stream);
    }
    if (before != after) backend.copy(after, before, handle.bytes, call.stream);
  }

  void step_own(const PortCall& call) {
    if (!batch_.started) throw std::runtime_error("expected reset() before the first step");
    batch_.check_envs(backend_.on_host);
    for (size_t i = 0; i < in_.size(); ++i) check_actions(in_[i], input(call, i + 1, in_[i]).data);
    for (size_t i = 0; i < in_.size(); ++i)
      backend_.backend->copy(pointer(batch_, in_[i]), input(call, i + 1, in_[i]).data, in_[i].bytes,
                             call.stream);
    Batch batch = batch_;
    batch.actions_b = nullptr;  // a second player presses nothing
    backend_.backend->step(batch, call.stream);
  }

  void reset_own(const PortCall& call) {
    batch_.check_envs(backend_.on_host);
    const auto envs = static_cast<uint64_t>(batch_.num_envs);
    uint64_t next = 1;
    const int64_t* seeds = nullptr;
    const uint8_t* mask = nullptr;
    if (call.seeds)
      seeds = static_cast<const int64_t*>(input(call, next++, {"seeds", 0, envs * 8}).data);
    if (call.masks)
      mask = static_cast<const uint8_t*>(input(call, next++, {"reset_mask", 0, envs}).data);
    const auto is_negative = [](int64_t seed) { return seed < 0; };
    if (seeds && backend_.on_host && std::any_of(seeds, seeds + envs, is_negative))
      throw std::invalid_argument("expected seeds from 0 to " + std::to_string(INT64_MAX) +
                                  ", got a negative one");
    if (mask && !batch_.started &&
        (!backend_.on_host || !std::all_of(mask, mask + envs, [](uint8_t one) { return one; })))
      throw std::runtime_error("expected the first reset to reset every env, got a reset_mask");
    if (!seeds && !batch_.started) seeds = reinterpret_cast<const int64_t*>(use_.first_seeds);
    backend_.backend->reset(batch_, mask, seeds, call.stream);
    batch_.started = true;
  }

  void play_elsewhere(const PortCall& call) {
    Batch batch = batch_;
    const std::vector<PortArray>& out = call.steps ? step_out_ : reset_out_;
    for (size_t i = 0; i < out.size(); ++i) pointer(batch, out[i]) = output(call, i, out[i]).data;
    if (!call.steps) {
      const uint64_t bytes = uint64_t{8} * static_cast<uint64_t>(batch.num_envs);
      const auto* seeds = static_cast<const int64_t*>(input(call, 0, {"seeds", 0, bytes}).data);
      check_once(batch, out, call);
      return backend_.backend->reset(batch, nullptr, seeds, call.stream);
    }
    for (size_t i = 0; i < in_.size(); ++i) {
      const CallBuffer& given = input(call, i, in_[i]);
      void*& at = pointer(batch, in_[i]);
      const bool is_output = std::any_of(out.begin(), out.end(), [&](const PortArray& one) {
        return one.offset == in_[i].offset;
      });
      // XLA gives a state's buffers as outputs, too, unless it has a use for them.
      if (is_output && at != given.data)
        backend_.backend->copy(at, given.data, given.bytes, call.stream);
      if (!is_output) at = given.data;
      check_actions(in_[i], given.data);
    }
    check_once(batch, out, call);
    check_states(batch, call.stream);
    backend_.backend->step(batch, call.stream);
  }

  void check_states(const Batch& batch, void* stream) const {
    if (!backend_.on_host) return backend_.backend->mend_states(batch, stream);
    for (int32_t env = 0; env < batch.num_envs; ++env) {
      if (const char* part = find_impossible(batch, static_cast<size_t>(env)))
        throw std::invalid_argument("expected states that playing can produce, got state " +
                                    std::to_string(env) + " with an impossible value in " + part);
    }
  }

  // Checks the batch as a whole: after that only a call's buffers are other ones.
  void check_once(const Batch& batch, const std::vector<PortArray>& out, const PortCall& call) {
    if (checked_[call.steps]) return;
    CheckedBatch whole = batch_;
    static_cast<Batch&>(whole) = batch;
    for (const PortArray& one : out) whole.bytes[one.name] = one.bytes;
    for (const PortArray& one : in_) whole.bytes[one.name] = one.bytes;
    BatchCheck(whole, whole.bytes, {true, !backend_.on_host}).all();
    checked_[call.steps] = true;
  }

  std::mutex turn_;  // of one call at a time, and of closing
  CheckedBackend& backend_;
  CheckedBatch& batch_;
  Guard& guard_;
  const PortUse use_;
  std::vector<PortArray> in_, reset_out_, step_out_;
  const uint64_t process_ = process_number();
  bool closed_ = false, checked_[2] = {false, false};
};

// The ports that are open in this process, by their numbers.
class OpenPorts {
 public:
  static OpenPorts& all() {
    static std::atomic<OpenPorts*> ports{new OpenPorts};  // never freed: threads may call last
    OpenPorts* found = ports.load();
    if (found->process_ == process_number()) return *found;
    // A fork has none of the threads of which one may have held the mutex, and none of the ports.
    auto* own = new OpenPorts;
    if (ports.compare_exchange_strong(found, own)) return *own;
    delete own;
    return *found;
  }
  uint64_t add(std::shared_ptr<Port> port) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t number;
    do {
      number = (uint64_t{random_()} << 31 ^ random_()) & (~uint64_t{0} >> 1);
    } while (ports_.count(number));
    ports_.emplace(number, std::move(port));
    return number;
  }
  void remove(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ports_.erase(number);
  }
  std::shared_ptr<Port> get(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = ports_.find(number);
    if (found != ports_.end()) return found->second;
    throw no_open_env();
  }

 private:
  const uint64_t process_ = process_number();
  std::mutex mutex_;
  std::random_device random_;
  std::map<uint64_t, std::shared_ptr<Port>> ports_;
};

// What Python has of a port: it is open as long as this is.
class OwnedPort {
 public:
  OwnedPort(CheckedBackend& backend, CheckedBatch& batch, Guard& guard, const PortUse& use)
      : port_(std::make_shared<Port>(backend, batch, guard, use)),
        number_(OpenPorts::all().add(port_)) {}
  ~OwnedPort() { close(); }
  OwnedPort(const OwnedPort&) = delete;
  OwnedPort& operator=(const OwnedPort&) = delete;

  uint64_t number() const { return number_; }
  void close() {
    if (!port_->is_of_this_process()) return;
    OpenPorts::all().remove(number_);
    pybind11::gil_scoped_release release;
    port_->close();
  }

 private:
  std::shared_ptr<Port> port_;
  uint64_t number_;
};

inline bool play_call(const PortCall& call, char* problem) noexcept {
  const auto say = [&](const char* text) {
    std::strncpy(problem, text, kProblemBytes - 1);
    problem[kProblemBytes - 1] = 0;
    return false;
  };
  try {
    OpenPorts::all().get(call.port)->play(call);
    return true;
  } catch (const std::exception& error) {
    return say(error.what());
  } catch (...) {
    return say("expected a call that can be played, got an unknown error");
  }
}

}  // namespace cule
