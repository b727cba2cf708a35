// Lets one thread at a time into an env.
//
// It is C++ because Python may raise an exception between any two byte codes, for example in a
// signal handler. In C++ no exception can come between entering the env and leaving it.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "common/platform.h"
#include CULE_SYSTEM

namespace cule {

// The GIL is held whenever a guard's fields are read or written, except those of programs.
class Guard {
 public:
  // A compiled program's call (bindings/port.h), whose thread has no GIL. It is refused while a
  // thread of Python is in the env, and one that comes meanwhile waits for its end: so neither
  // waits for the other. The caller sees to it that there is one program's call at a time.
  class Program {
   public:
    explicit Program(Guard& guard) : guard_(guard) {
      guard_.program_ = forks + 1;
      if (guard_.python_ != forks + 1) return;
      guard_.program_ = 0;
      throw std::runtime_error("expected one thread at a time in an env, got a compiled program's "
                               "call while another thread is in one");
    }
    ~Program() { guard_.program_ = 0; }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

   private:
    Guard& guard_;
  };

  // Calls `function` with this thread in the env. A signal handler may make such a call while
  // another call of the same thread runs. It may then only read: a call that `changes` the env
  // would do so in the middle of the other one.
  pybind11::object call(const char* name, bool changes, const pybind11::object& function,
                        const pybind11::args& arguments, const pybind11::kwargs& keywords) {
    const Visit visit(*this, name, changes);
    PyObject* result = PyObject_Call(function.ptr(), arguments.ptr(), keywords.ptr());
    if (!result) throw pybind11::error_already_set();
    return pybind11::reinterpret_steal<pybind11::object>(result);
  }

  // A forked child has no other threads of its parent, so no thread is in its envs.
  static void watch_forks() {
    call_in_forks([] { ++forks; });
  }

 private:
  struct Occupant {
    const char* name = nullptr;  // of the outermost call; null if no thread is in the env
    unsigned long thread = 0;
    unsigned long forks = 0;
  };

  struct Visit {
    Guard& guard;
    Occupant& occupant;
    const Occupant before;

    Visit(Guard& guard, const char* name, bool changes)
        : guard(guard),
          occupant(guard.occupant_),
          before(occupant.forks == forks ? occupant : Occupant{}) {
      const unsigned long thread = PyThread_get_thread_ident();
      if (before.name && before.thread != thread) {
        throw std::runtime_error(std::string("expected one thread at a time in an env, got ") +
                                 name + "() while another thread is in one");
      }
      if (before.name && changes) {
        throw std::runtime_error(std::string("expected ") + before.name +
                                 "() to return before the env is changed, got " + name +
                                 "() inside it, as from a signal's handler");
      }
      occupant = {before.name ? before.name : name, thread, forks};
      if (!before.name) guard.keep_programs_out();
    }
    ~Visit() {
      occupant = before;
      if (!before.name) guard.python_ = 0;
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
  };

  // Programs' calls are refused from here on. Waits for one that is being played.
  void keep_programs_out() {
    python_ = forks + 1;
    if (program_ != forks + 1) return;
    pybind11::gil_scoped_release release;
    while (program_ == forks + 1) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

  inline static unsigned long forks = 0;  // how many forks lead to this process
  Occupant occupant_;
  // Whether a program's call, or a thread of Python, is in the env: the number of forks and 1.
  std::atomic<unsigned long> program_{0}, python_{0};
};

}  // namespace cule
