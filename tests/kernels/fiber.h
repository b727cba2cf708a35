// A fiber: a function with its own stack, which takes turns with the code that resumes it.
#pragma once

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

class Fiber {
 public:
  // `body` never returns.
  Fiber(void (*body)(void*), void* argument) : body_(body), argument_(argument) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, page + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("expected memory for a stack, got none");
    mprotect(memory, page, PROT_NONE);  // guards the end of the stack
    stack_ = static_cast<char*>(memory) + page;
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it pauses.
  void resume() {
    if (_setjmp(resumer_) != 0) return arrive(nullptr, nullptr);
    depart(stack_, kStackBytes);
    if (begun_) _longjmp(body_at_, 1);
    begun_ = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack_;
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    const auto address = reinterpret_cast<uintptr_t>(this);
    makecontext(&context, reinterpret_cast<void (*)()>(&begin), 2, static_cast<unsigned>(address),
                static_cast<unsigned>(address >> 32));
    setcontext(&context);
  }

  // The body calls this to stop until it is resumed.
  void pause() {
    if (_setjmp(body_at_) != 0) return arrive(&resumer_stack_, &resumer_stack_bytes_);
    depart(resumer_stack_, resumer_stack_bytes_);
    _longjmp(resumer_, 1);
  }

  // The next `resume` starts the body from its beginning, wherever it paused.
  void forget() { begun_ = false; }

 private:
  static constexpr size_t kStackBytes = 512 * 1024;

  static void begin(unsigned low, unsigned high) {
    auto* fiber = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
    fiber->arrive(&fiber->resumer_stack_, &fiber->resumer_stack_bytes_);
    fiber->body_(fiber->argument_);
  }

  // These tell AddressSanitizer which stack is in use.
#if defined(__SANITIZE_ADDRESS__)
  static void depart(const void* stack, size_t bytes) {
    __sanitizer_start_switch_fiber(nullptr, stack, bytes);
  }
  static void arrive(const void** from, size_t* bytes) {
    __sanitizer_finish_switch_fiber(nullptr, from, bytes);
  }
#else
  static void depart(const void*, size_t) {}
  static void arrive(const void**, size_t*) {}
#endif

  void (*body_)(void*);
  void* argument_;
  char* stack_;
  bool begun_ = false;
  jmp_buf body_at_, resumer_;
  const void* resumer_stack_ = nullptr;
  size_t resumer_stack_bytes_ = 0;
};
