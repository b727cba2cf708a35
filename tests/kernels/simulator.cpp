// A GPU for tests: runs the blocks of a grid one after the other on the CPU. The threads of a block
// are fibers.
//
// A fiber runs until it calls a collective function (__syncthreads, __syncwarp, a vote), asks which
// lanes are active, naps or ends. Then another fiber runs, which a seed chooses: if code lacks a
// barrier, its results differ from seed to seed. When a block begins, shared memory is full of
// garbage, and after its dynamic part come bytes that must not change. A launch fails if a block
// can never end, or if a lane makes a collective call with a mask that leaves it out.
//
// Not simulated: the order of memory accesses, blocks of more than one dimension, blocks that run
// at the same time, and __launch_bounds__.
#include "simulator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "fiber.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace {

constexpr unsigned kLanes = 32;  // of a warp
constexpr uint8_t kGuard = 0xDB;
// If threads nap more often than this on average, what they wait for never comes.
constexpr uint64_t kMaxNaps = 20'000;

}  // namespace

namespace cule {
// The dynamic shared memory. kernels/cuda/play.cuh declares it by this name.
SIMULATED thread_local uint4 shared_words[simulated::kMaxShared / sizeof(uint4)];
}  // namespace cule

namespace {

using simulated::kMaxShared;

enum class Wait {
  kReady, kEnded, kNapping, kBlock, kWarp, kAny, kBallot, kShuffle, kLeast, kMatch, kActiveMask
};
constexpr const char* kWaitNames[] = {"",           "",           "__nanosleep",   "__syncthreads",
                                      "__syncwarp", "__any_sync", "__ballot_sync", "__shfl_sync",
                                      "__reduce_min_sync", "__match_any_sync", "__activemask"};

void serve(void* thread);

// Whether this is a wait of the lanes of a mask for each other.
bool is_masked(Wait wait) { return wait >= Wait::kWarp && wait <= Wait::kMatch; }

struct Thread {
  explicit Thread(unsigned number) : number(number), fiber(serve, this) {}

  unsigned number;  // in its block
  Wait wait = Wait::kEnded;
  unsigned mask = 0;               // the lanes of a collective call
  bool condition = false;          // this lane's vote
  unsigned value = 0, source = 0;  // this lane's value, and the lane whose value a shuffle returns
  const void* site = nullptr;      // where it called __activemask
  unsigned result = 0;
  Fiber fiber;
};

class Simulator {
 public:
  simulated::Settings settings;

  void run(const simulated::Kernel& kernel, dim3 blocks, unsigned threads, size_t shared_bytes,
           void** arguments);

  // A thread calls this to let other threads run until what it waits for is there.
  unsigned wait(Wait what, unsigned mask = 0, bool condition = false, const void* site = nullptr);
  unsigned shuffle(unsigned mask, unsigned value, unsigned source) {
    running_->value = value;
    running_->source = source;
    return wait(Wait::kShuffle, mask);
  }
  unsigned of_values(Wait what, unsigned mask, unsigned value) {
    running_->value = value;
    return wait(what, mask);
  }
  void serve(Thread& thread);

 private:
  void run_block();
  void wake(Thread& thread);
  void note_stopped(Thread& thread);
  void complete_block();
  void complete_warp(unsigned warp, unsigned lane);
  unsigned alike(unsigned warp, unsigned mask, unsigned value);
  void answer_active_masks(unsigned warp);
  unsigned lanes_of(unsigned warp) const { return std::min(kLanes, blockDim.x - warp * kLanes); }
  Thread& thread_at(unsigned warp, unsigned lane) { return *threads_[warp * kLanes + lane]; }
  void fail(const std::string& what);
  std::string waiting() const;
  void fill_with_garbage();
  void check_guard() const;

  std::vector<std::unique_ptr<Thread>> threads_;
  std::deque<Thread*> ready_;
  std::vector<Thread*> napping_;
  std::vector<unsigned> awake_;  // for each warp: how many of its threads run or could run
  unsigned alive_ = 0, in_block_barrier_ = 0;
  uint64_t naps_ = 0;
  Thread* running_ = nullptr;
  std::mt19937_64 random_;
  const simulated::Kernel* kernel_ = nullptr;
  void** arguments_ = nullptr;
  size_t shared_bytes_ = 0;
  char* statics_ = nullptr;  // all shared variables of the kernel's library
  size_t static_bytes_ = 0;
  std::string failure_;
};

Simulator simulator;

void serve(void* thread) { simulator.serve(*static_cast<Thread*>(thread)); }

// Blocks ------------------------------------------------------------------------------------------

void Simulator::run(const simulated::Kernel& kernel, dim3 blocks, unsigned threads,
                    size_t shared_bytes, void** arguments) {
  kernel_ = &kernel;
  arguments_ = arguments;
  shared_bytes_ = shared_bytes;
  random_.seed(settings.seed);
  while (threads_.size() < threads) {
    threads_.push_back(std::make_unique<Thread>(static_cast<unsigned>(threads_.size())));
  }
  gridDim = blocks;
  blockDim = threads;
  std::tie(statics_, static_bytes_) = simulated::shared_variables_of(kernel.entry);
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = {x, y, z};
        run_block();
      }
    }
  }
}

void Simulator::run_block() {
  fill_with_garbage();
  failure_.clear();
  ready_.clear();
  napping_.clear();
  naps_ = in_block_barrier_ = 0;
  alive_ = blockDim.x;
  awake_.assign((blockDim.x + kLanes - 1) / kLanes, 0);
  for (unsigned i = 0; i < blockDim.x; ++i) wake(*threads_[i]);
  while (failure_.empty()) {
    if (ready_.empty()) {
      if (napping_.empty()) break;
      naps_ += napping_.size();
      if (naps_ > kMaxNaps * blockDim.x) fail("threads nap without end");
      for (Thread* thread : napping_) wake(*thread);
      napping_.clear();
    }
    if (settings.seed) std::swap(ready_.front(), ready_[random_() % ready_.size()]);
    Thread* next = ready_.front();
    ready_.pop_front();
    running_ = next;
    threadIdx = {next->number, 0, 0};
    next->fiber.resume();
  }
  if (failure_.empty() && alive_) fail("deadlock");
  if (failure_.empty()) check_guard();
  if (failure_.empty()) return;
  for (auto& thread : threads_) {
    if (thread->wait != Wait::kEnded) thread->fiber.forget();
    thread->wait = Wait::kEnded;
  }
  throw std::runtime_error(failure_);
}

void Simulator::fail(const std::string& what) {
  char at[64];
  std::snprintf(at, sizeof at, " in block (%u, %u, %u)", blockIdx.x, blockIdx.y, blockIdx.z);
  failure_ = what + at + waiting();
}

// Says how many threads wait where.
std::string Simulator::waiting() const {
  std::map<std::string, unsigned> counts;
  for (unsigned i = 0; i < blockDim.x; ++i) {
    const Thread& thread = *threads_[i];
    if (thread.wait == Wait::kReady || thread.wait == Wait::kEnded) continue;
    char name[64];
    const bool masked = is_masked(thread.wait);
    std::snprintf(name, sizeof name, masked ? "%s(%#x) of warp %u" : "%s",
                  kWaitNames[static_cast<int>(thread.wait)], thread.mask, i / kLanes);
    ++counts[name];
  }
  std::string text;
  for (const auto& [name, count] : counts)
    text += (text.empty() ? ": " : ", ") + std::to_string(count) + " in " + name;
  return text;
}

void Simulator::fill_with_garbage() {
  auto* dynamic = reinterpret_cast<char*>(cule::shared_words);
  const auto fill = [&](char* begin, char* end) {
    for (; end - begin >= 8; begin += 8) {
      const uint64_t word = random_();
      std::memcpy(begin, &word, 8);
    }
    std::memset(begin, 0xA5, static_cast<size_t>(end - begin));
  };
  // The dynamic part may be one of the library's variables. It is filled separately.
  const size_t before = reinterpret_cast<uintptr_t>(dynamic) -
                        reinterpret_cast<uintptr_t>(statics_);
  const bool inside = before < static_bytes_;
  fill(statics_, statics_ + (inside ? before : static_bytes_));
  if (inside) fill(statics_ + before + kMaxShared, statics_ + static_bytes_);
  fill(dynamic, dynamic + shared_bytes_);
  std::memset(dynamic + shared_bytes_, kGuard, kMaxShared - shared_bytes_);
}

void Simulator::check_guard() const {
  const auto* bytes = reinterpret_cast<const uint8_t*>(cule::shared_words);
  for (size_t i = shared_bytes_; i < kMaxShared; ++i) {
    if (bytes[i] == kGuard) continue;
    const_cast<Simulator*>(this)->fail("byte " + std::to_string(i) + " of " +
                                       std::to_string(shared_bytes_) +
                                       " of dynamic shared memory was written to");
    return;
  }
}

// The body of a fiber. It is a thread of one block after the other.
void Simulator::serve(Thread& thread) {
  for (;;) {
    kernel_->call(kernel_->entry, arguments_);
    thread.wait = Wait::kEnded;
    --alive_;
    // Other threads may have waited only for this one.
    complete_block();
    const unsigned warp = thread.number / kLanes;
    for (unsigned lane = 0; lane < lanes_of(warp); ++lane) complete_warp(warp, lane);
    note_stopped(thread);
    thread.fiber.pause();
  }
}

// Waiting -----------------------------------------------------------------------------------------

void Simulator::wake(Thread& thread) {
  thread.wait = Wait::kReady;
  ++awake_[thread.number / kLanes];
  ready_.push_back(&thread);
}

// One thread less of a warp can run. If it was the last, this answers those that called
// __activemask.
void Simulator::note_stopped(Thread& thread) {
  const unsigned warp = thread.number / kLanes;
  if (--awake_[warp] == 0) answer_active_masks(warp);
}

unsigned Simulator::wait(Wait what, unsigned mask, bool condition, const void* site) {
  Thread& thread = *running_;
  thread.wait = what;
  thread.mask = mask;
  thread.condition = condition;
  thread.site = site;
  const unsigned warp = thread.number / kLanes, lane = thread.number % kLanes;
  if (what == Wait::kNapping) napping_.push_back(&thread);
  if (what == Wait::kBlock) ++in_block_barrier_;
  const bool masked = is_masked(what);
  if (masked && !(mask >> lane & 1))
    fail("thread " + std::to_string(thread.number) + " calls with a mask without its lane");
  if (what == Wait::kBlock) complete_block();
  if (masked) complete_warp(warp, lane);
  note_stopped(thread);
  thread.fiber.pause();
  return thread.result;
}

// If all threads that have not ended wait for each other, lets them go on.
void Simulator::complete_block() {
  if (in_block_barrier_ == 0 || in_block_barrier_ < alive_) return;
  in_block_barrier_ = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) {
    if (threads_[i]->wait == Wait::kBlock) wake(*threads_[i]);
  }
}

// The same for the lanes of a waiting lane's mask.
void Simulator::complete_warp(unsigned warp, unsigned lane) {
  const Thread& asking = thread_at(warp, lane);
  const Wait wait = asking.wait;
  const unsigned mask = asking.mask;
  if (!is_masked(wait)) return;
  unsigned ballot = 0, least = ~0u;
  for (unsigned i = 0; i < lanes_of(warp); ++i) {
    const Thread& other = thread_at(warp, i);
    if (!(mask >> i & 1) || other.wait == Wait::kEnded) continue;
    if (other.wait != wait || other.mask != mask) return;
    ballot |= static_cast<unsigned>(other.condition) << i;
    least = min(least, other.value);
  }
  for (unsigned i = 0; i < lanes_of(warp); ++i) {
    Thread& other = thread_at(warp, i);
    if (!(mask >> i & 1) || other.wait == Wait::kEnded) continue;
    if (wait == Wait::kShuffle) other.result = thread_at(warp, other.source % kLanes).value;
    else if (wait == Wait::kLeast) other.result = least;
    else if (wait == Wait::kMatch) other.result = alike(warp, mask, other.value);
    else other.result = wait == Wait::kAny ? ballot != 0 : ballot;
    wake(other);
  }
}

// The lanes of a mask that have a value.
unsigned Simulator::alike(unsigned warp, unsigned mask, unsigned value) {
  unsigned lanes = 0;
  for (unsigned i = 0; i < lanes_of(warp); ++i) {
    const Thread& other = thread_at(warp, i);
    const bool has = mask >> i & 1 && other.wait != Wait::kEnded && other.value == value;
    lanes |= static_cast<unsigned>(has) << i;
  }
  return lanes;
}

// Lanes that asked at the same place are together. Without `settings.together` they are divided in
// two at random.
void Simulator::answer_active_masks(unsigned warp) {
  const uint64_t parts = settings.together ? 0 : random_() & random_();
  const auto together = [&](const Thread& a, const Thread& b) {
    return a.wait == Wait::kActiveMask && b.wait == Wait::kActiveMask && a.site == b.site &&
           (parts >> a.number % kLanes & 1) == (parts >> b.number % kLanes & 1);
  };
  std::vector<Thread*> asked;
  for (unsigned i = 0; i < lanes_of(warp); ++i) {
    Thread& thread = thread_at(warp, i);
    if (thread.wait != Wait::kActiveMask) continue;
    asked.push_back(&thread);
    thread.result = 0;
    for (unsigned k = 0; k < lanes_of(warp); ++k)
      thread.result |= static_cast<unsigned>(together(thread, thread_at(warp, k))) << k;
  }
  for (Thread* thread : asked) wake(*thread);
}

}  // namespace

// What kernels call -------------------------------------------------------------------------------

void __syncthreads() { simulator.wait(Wait::kBlock); }
void __syncwarp(unsigned mask) { simulator.wait(Wait::kWarp, mask); }
int __any_sync(unsigned mask, int condition) {
  return static_cast<int>(simulator.wait(Wait::kAny, mask, condition != 0));
}
unsigned __shfl_sync(unsigned mask, unsigned value, int source) {
  return simulator.shuffle(mask, value, static_cast<unsigned>(source));
}
unsigned __reduce_min_sync(unsigned mask, unsigned value) {
  return simulator.of_values(Wait::kLeast, mask, value);
}
unsigned __match_any_sync(unsigned mask, unsigned value) {
  return simulator.of_values(Wait::kMatch, mask, value);
}
unsigned __ballot_sync(unsigned mask, int condition) {
  return simulator.wait(Wait::kBallot, mask, condition != 0);
}
unsigned __activemask() {
  return simulator.wait(Wait::kActiveMask, 0, false, __builtin_return_address(0));
}
void __nanosleep(unsigned) { simulator.wait(Wait::kNapping); }

namespace simulated {

Settings& settings() { return simulator.settings; }
int& lanes_played() {
  static int lanes = 0;
  return lanes;
}

Stream& stream() {
  static Stream of_test;
  return of_test;
}

void run(const Kernel& kernel, dim3 blocks, unsigned threads, size_t shared_bytes,
         void** arguments) {
  simulator.run(kernel, blocks, threads, shared_bytes, arguments);
}

}  // namespace simulated
