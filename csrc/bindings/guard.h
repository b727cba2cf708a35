// Lets one thread at a time into an env.
//
// It is C++ because Python may raise an exception between any two byte codes, for example in a
// signal handler. In C++ no exception can come between entering the env and leaving it.
#pragma once

#include <pthread.h>
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

namespace cule {

// The GIL is held whenever a guard's fields are read or written.
class Guard {
 public:
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
    pthread_atfork(nullptr, nullptr, [] { ++forks; });
  }

 private:
  struct Occupant {
    const char* name = nullptr;  // of the outermost call; null if no thread is in the env
    unsigned long thread = 0;
    unsigned long forks = 0;
  };

  struct Visit {
    Occupant& occupant;
    const Occupant before;

    Visit(Guard& guard, const char* name, bool changes)
        : occupant(guard.occupant_), before(occupant.forks == forks ? occupant : Occupant{}) {
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
    }
    ~Visit() { occupant = before; }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
  };

  inline static unsigned long forks = 0;  // how many forks lead to this process
  Occupant occupant_;
};

}  // namespace cule
