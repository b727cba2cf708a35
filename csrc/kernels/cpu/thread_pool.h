// The threads of the CPU backend. They do the work of flights. A flight is a number of indices,
// such as those of the envs that take a step, and a function that is called for each of them.
//
// Each thread has a share of a flight's indices: the same one whenever the same indices fly, so
// that what belongs to an index stays in the thread's caches. A thread that has done its share
// takes from those of the others, one index at a time, so all end nearly together. Several flights
// may be in the air. The threads turn to the oldest one that still has indices which nobody has
// taken.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/platform.h"

namespace cule {

// Has `threads` threads that run at once. The caller's is number 0 while it waits in run(). Flights
// of start() have another thread in its place, which is started with the first of them.
//
// Thread i runs on CPU `cpus[i]` only, if there are any. The caller's is left alone.
class ThreadPool {
 public:
  using Work = std::function<void(int thread, int index)>;

  // Which indices are worked on. An empty list stands for 0 to `count` - 1.
  struct Indices {
    explicit Indices(int all) : count(all) {}
    explicit Indices(std::vector<int> some)
        : count(static_cast<int>(some.size())), list(std::move(some)) {}
    int at(int place) const { return list.empty() ? place : list[place]; }
    int count;
    std::vector<int> list;
  };

  // What becomes of an index whose work is done: somebody waits for the whole flight, or takes
  // single indices in the order in which they land.
  enum class Landing { kTogether, kSingly };

  class Flight {
   public:
    Flight(Indices which, Work what, int threads, bool caller_helps, Landing how)
        : indices(std::move(which)), work(std::move(what)), with_caller(caller_helps),
          landing(how), shares(threads), left(indices.count) {
      for (int i = 0; i < threads; ++i) {
        shares[i].next = static_cast<int>(int64_t{indices.count} * i / threads);
        shares[i].end = static_cast<int>(int64_t{indices.count} * (i + 1) / threads);
      }
    }

   private:
    friend class ThreadPool;
    // Apart from each other, as each thread writes to its own one.
    struct alignas(64) Share {
      std::atomic<int> next{0};
      int end = 0;
    };

    const Indices indices;
    const Work work;
    const bool with_caller;
    const Landing landing;
    std::vector<Share> shares;   // one for each thread
    // The pool's mutex guards these.
    int left;                    // indices whose work is not done
    std::exception_ptr failure;  // the first that `work` threw
  };

  ThreadPool(int threads, const std::vector<int>& cpus) : threads_(threads), cpus_(cpus) {
    try {
      for (int i = 1; i < threads; ++i) add_worker(i, false);
    } catch (const std::runtime_error&) {
      close();
      throw;
    }
  }

  ~ThreadPool() { close(); }

  int threads() const { return threads_; }

  // Calls `work` for every index below `count`, with the caller's help, and returns when all is
  // done. Nothing else may be in flight.
  void run(int count, Work work) {
    const auto flight = launch(Indices(count), std::move(work), true, Landing::kTogether);
    take_part(*flight, 0);
    wait(*flight);
  }

  // Starts to call `work` for some indices, and returns.
  std::shared_ptr<Flight> start(Indices indices, Work work, Landing landing) {
    if (!has_stand_in_) add_worker(0, true);
    return launch(std::move(indices), std::move(work), false, landing);
  }

  // Whether a flight's work is done.
  bool is_done(const Flight& flight) {
    std::lock_guard<std::mutex> lock(mutex_);
    return flight.left == 0;
  }

  // Waits until a flight's work is done. Throws what the work threw.
  void wait(Flight& flight) {
    std::unique_lock<std::mutex> lock(mutex_);
    landed_one_.wait(lock, [&] { return flight.left == 0; });
    if (flight.failure) std::rethrow_exception(std::exchange(flight.failure, nullptr));
  }

  // Waits until `count` indices of flights that land singly have landed, and returns them in the
  // order in which they did. Throws what the work threw, once; the indices can be taken then.
  std::vector<int> take(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    landed_one_.wait(lock, [&] { return failure_ || static_cast<int>(landed_.size()) >= count; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    const std::vector<int> taken(landed_.begin(), landed_.begin() + count);
    landed_.erase(landed_.begin(), landed_.begin() + count);
    return taken;
  }

  // Waits until all work is done, and forgets what has not been taken.
  void finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    landed_one_.wait(lock, [this] { return left_ == 0; });
    landed_.clear();
    failure_ = nullptr;
  }

 private:
  void add_worker(int thread, bool stands_in) {
    try {
      workers_.emplace_back([this, thread, stands_in] { serve(thread, stands_in); });
      has_stand_in_ = stands_in;
    } catch (const std::exception& problem) {  // a limit on processes or memory
      throw std::runtime_error(
          "expected to start " + std::to_string(stands_in ? threads_ : threads_ - 1) +
          " threads beside the caller's, got " + std::to_string(workers_.size()) +
          ", so that num_threads cannot be " + std::to_string(threads_) + " here: " +
          problem.what());
    }
    if (cpus_.empty() || pin_thread(workers_.back().native_handle(), cpus_[thread])) return;
    throw std::runtime_error("expected to pin a thread to CPU " + std::to_string(cpus_[thread]) +
                             ", as thread_affinity_offset asks, but this system refuses");
  }

  void close() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  std::shared_ptr<Flight> launch(Indices indices, Work work, bool with_caller, Landing landing) {
    const int count = indices.count;
    auto flight = std::make_shared<Flight>(std::move(indices), std::move(work), threads_,
                                           with_caller, landing);
    int threads = 0;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (count) waiting_.push_back(flight);
      left_ += count;
      if (!with_caller) to_wake_ = std::min(threads_, to_wake_ + count);
      threads = take_to_wake(1);
    }
    if (with_caller) wake_.notify_all();
    else wake(threads);
    return flight;
  }

  // With the mutex locked: how many threads the caller is to wake, at most so many. Waking a thread
  // takes microseconds. So whoever starts a flight wakes one, and each that is woken wakes two.
  int take_to_wake(int most) {
    const int threads = std::min({most, to_wake_, sleeping_});
    to_wake_ -= threads;
    return threads;
  }

  void wake(int threads) {
    for (int i = 0; i < threads; ++i) wake_.notify_one();
  }

  // Works on a flight until nobody has to take an index any more.
  void take_part(Flight& flight, int thread) {
    int done = 0;
    for (int i = 0; i < threads_; ++i) {
      Flight::Share& from = flight.shares[(thread + i) % threads_];
      for (int place = from.next++; place < from.end; place = from.next++) {
        const int index = flight.indices.at(place);
        work_on(flight, thread, index);
        if (flight.landing == Landing::kSingly) land(flight, index);
        else ++done;
      }
    }
    std::lock_guard<std::mutex> lock(mutex_);
    const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const auto& one) { return one.get() == &flight; });
    if (at != waiting_.end()) waiting_.erase(at);
    if (waiting_.empty()) to_wake_ = 0;
    count_off(flight, done);
  }

  void work_on(Flight& flight, int thread, int index) {
    std::exception_ptr problem;
    try {
      flight.work(thread, index);
    } catch (...) {
      problem = std::current_exception();
    }
    if (!problem) return;
    std::lock_guard<std::mutex> lock(mutex_);
    std::exception_ptr& failure = flight.landing == Landing::kSingly ? failure_ : flight.failure;
    // Moved, so that the thread that catches it is the last to have it.
    if (!failure) failure = std::move(problem);
  }

  void land(Flight& flight, int index) {
    std::lock_guard<std::mutex> lock(mutex_);
    landed_.push_back(index);
    count_off(flight, 1);
    landed_one_.notify_all();
  }

  // With the mutex locked: so many more indices of a flight are done.
  void count_off(Flight& flight, int done) {
    left_ -= done;
    flight.left -= done;
    if (done && flight.left == 0) landed_one_.notify_all();
  }

  // With the mutex locked: the flight that a worker turns to; null: none.
  std::shared_ptr<Flight> next_for(bool stands_in) const {
    for (const auto& flight : waiting_)
      if (!(stands_in && flight->with_caller)) return flight;
    return nullptr;
  }

  void serve(int thread, bool stands_in) {
    for (;;) {
      std::shared_ptr<Flight> flight;
      int threads = 0;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        ++sleeping_;
        wake_.wait(lock, [&] { return closing_ || (flight = next_for(stands_in)) != nullptr; });
        --sleeping_;
        if (closing_) return;
        threads = take_to_wake(2);
      }
      wake(threads);
      take_part(*flight, thread);
    }
  }

  const int threads_;
  const std::vector<int> cpus_;
  std::vector<std::thread> workers_;
  bool has_stand_in_ = false;
  std::mutex mutex_;
  std::condition_variable wake_, landed_one_;
  std::deque<std::shared_ptr<Flight>> waiting_;  // with indices that nobody has taken
  std::deque<int> landed_;                       // singly, and not taken yet
  std::exception_ptr failure_;                   // of a flight that lands singly
  int left_ = 0;                                 // indices whose work is not done
  int sleeping_ = 0;                             // workers that wait for a flight
  int to_wake_ = 0;                              // of those, how many flights could still use
  bool closing_ = false;
};

}  // namespace cule
