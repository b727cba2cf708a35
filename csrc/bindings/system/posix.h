// What the bindings ask the system for: Linux and macOS.
#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

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

}  // namespace cule
