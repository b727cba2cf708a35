// What the bindings ask the system for: Linux and macOS.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace cule {

// The number that tells this process from all others that run.
inline uint64_t process_number() { return static_cast<uint64_t>(getpid()); }

// Calls `function` in each forked child.
inline void call_in_forks(void (*function)()) { pthread_atfork(nullptr, nullptr, function); }

// Whether all pages from one address to another are mapped in this process: for others msync fails.
inline bool are_pages_mapped(uint64_t begin, uint64_t end) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = begin / page * page;
  return msync(reinterpret_cast<void*>(first), end - first, MS_ASYNC) == 0;
}

// The file that the handler of the caught signal writes into.
inline std::atomic<int> signal_file{-1};
inline void tell_of_signal(int) {
  const int problem = errno;
  const char byte = 0;
  [[maybe_unused]] const auto written = write(signal_file, &byte, 1);
  errno = problem;
}
// From now on a signal that would have ended this process writes a byte into `file`, at once and in
// whichever thread has it. False: it would not have. One signal can be caught.
inline bool catch_signal(int number, int file) {
  struct sigaction now;
  if (sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return false;
  signal_file = file;
  now.sa_handler = tell_of_signal;
  now.sa_flags = SA_RESTART | SA_ONSTACK;
  return sigaction(number, &now, nullptr) == 0;
}
// A signal that was caught is as before, unless the program has set a handler of its own.
inline void release_signal(int number) {
  struct sigaction now;
  if (sigaction(number, nullptr, &now) != 0 || now.sa_handler != tell_of_signal) return;
  now.sa_handler = SIG_DFL;
  sigaction(number, &now, nullptr);
}

}  // namespace cule
