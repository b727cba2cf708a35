// The CPU backend's threads under a sanitizer: flights of all kinds, in random order, whose work
// counts what it was called for and sometimes fails.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu/thread_pool.h"

namespace {

using cule::ThreadPool;

constexpr int kIndices = 64;

void expect(bool is_true, const char* what) {
  if (is_true) return;
  std::fprintf(stderr, "pool: expected %s\n", what);
  std::exit(1);
}

struct Counts {
  // Not atomic: the pool has to order all accesses.
  std::vector<int> calls = std::vector<int>(kIndices);
  std::vector<int> expected = std::vector<int>(kIndices);

  ThreadPool::Work work(int fails_at) {
    return [this, fails_at](int, int index) {
      ++calls[index];
      if (index == fails_at) throw std::runtime_error("planted");
    };
  }
};

template <class Call>
bool fails(const Call& call) {
  try {
    call();
  } catch (const std::runtime_error& problem) {
    expect(std::string(problem.what()) == "planted", "the failure of the work");
    return true;
  }
  return false;
}

// Runs with the caller's help, some of which fail.
void run_alone(ThreadPool& pool, Counts& counts, std::mt19937& random) {
  for (int i = 0; i < 20; ++i) {
    const int count = static_cast<int>(random() % (kIndices + 1));
    const int fails_at = random() % 4 ? -1 : static_cast<int>(random() % kIndices);
    const bool failed = fails([&] { pool.run(count, counts.work(fails_at)); });
    expect(failed == (fails_at >= 0 && fails_at < count), "a failure where one was planted");
    for (int k = 0; k < count; ++k) ++counts.expected[k];
  }
}

// Several groups in flight, each of which starts again when it has landed.
void fly_in_groups(ThreadPool& pool, Counts& counts, std::mt19937& random) {
  const int groups = 1 + static_cast<int>(random() % 5);
  std::vector<std::shared_ptr<ThreadPool::Flight>> flights(groups);
  std::vector<bool> planted(groups);
  for (int round = 0; round < 30; ++round) {
    const int group = static_cast<int>(random() % groups);
    if (flights[group]) {
      expect(fails([&] { pool.wait(*flights[group]); }) == planted[group], "a planted failure");
    }
    std::vector<int> indices;
    for (int k = group; k < kIndices; k += groups) indices.push_back(k);
    for (int k : indices) ++counts.expected[k];
    planted[group] = random() % 4 == 0;
    flights[group] = pool.start(ThreadPool::Indices(indices),
                                counts.work(planted[group] ? indices.back() : -1),
                                ThreadPool::Landing::kTogether);
  }
  for (int group = 0; group < groups; ++group)
    if (flights[group]) fails([&] { pool.wait(*flights[group]); });
}

// Single indices, which start again as soon as they have been taken.
void fly_singly(ThreadPool& pool, Counts& counts, std::mt19937& random) {
  std::vector<int> ready;
  for (int k = 0; k < kIndices; ++k) ready.push_back(k);
  int flying = 0;
  for (int round = 0; round < 60; ++round) {
    for (int k : ready) ++counts.expected[k];
    flying += static_cast<int>(ready.size());
    const int fails_at = random() % 4 || ready.empty() ? -1 : ready[0];
    pool.start(ThreadPool::Indices(ready), counts.work(fails_at), ThreadPool::Landing::kSingly);
    const int count = 1 + static_cast<int>(random() % flying);
    while (fails([&] { ready = pool.take(count); })) {}
    expect(static_cast<int>(ready.size()) == count, "as many indices as were asked for");
    flying -= count;
    if (random() % 10 == 0) {
      pool.finish();
      ready.clear();
      for (int k = 0; k < kIndices; ++k) ready.push_back(k);
      flying = 0;
    }
  }
  pool.finish();
}

}  // namespace

int main() {
  std::mt19937 random(7);
  for (int threads = 1; threads <= 4; ++threads) {
    Counts counts;
    {
      ThreadPool pool(threads, {});
      for (int i = 0; i < 5; ++i) {
        run_alone(pool, counts, random);
        fly_in_groups(pool, counts, random);
        fly_singly(pool, counts, random);
      }
      expect(counts.calls == counts.expected, "each index to be worked on as often as it flew");
      const auto fail = [](int, int index) {
        if (index == 3) throw std::runtime_error("planted");
      };
      for (int i = 0; i < 10; ++i)
        pool.start(ThreadPool::Indices(kIndices), fail, ThreadPool::Landing::kTogether);
    }  // closed while work is in flight
  }
  std::puts("all well");
}
