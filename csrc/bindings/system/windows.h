// What the bindings ask the system for: Windows.
#pragma once

#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <cstdint>

namespace cule {

// The number that tells this process from all others that run.
inline uint64_t process_number() { return GetCurrentProcessId(); }

// Windows has no forks.
inline void call_in_forks(void (*)()) {}

// Whether all pages from one address to another can be accessed in this process.
inline bool are_pages_mapped(uint64_t begin, uint64_t end) {
  while (begin < end) {
    MEMORY_BASIC_INFORMATION about;
    if (!VirtualQuery(reinterpret_cast<void*>(begin), &about, sizeof about)) return false;
    if (about.State != MEM_COMMIT || about.Protect & (PAGE_NOACCESS | PAGE_GUARD)) return false;
    begin = reinterpret_cast<uint64_t>(about.BaseAddress) + about.RegionSize;
  }
  return true;
}

// No signal of another process comes to one of Windows: TerminateProcess ends it.
inline bool catch_signal(int, int) { return false; }
inline void release_signal(int) {}

}  // namespace cule
