// Either way of dispatching instructions, chosen at run time.
#pragma once

#include <stdexcept>
#include <string>

#include "execution/interpreter.h"

namespace cule {

// By its name. Counts the predecoded instructions that it executes.
struct CoreByName : AnyGame {
  bool is_static;
  int64_t* executed;
  CoreByName(const std::string& name, int64_t* count)
      : is_static(name == "static"), executed(count) {
    if (!is_static && name != "dynamic") throw std::invalid_argument("core: static or dynamic");
  }
  template <class M>
  __attribute__((noinline)) Predecoded operator()(M& machine, Predecoded op) const {
    ++*executed;
    return is_static ? StaticCore{}(machine, op) : DynamicCore{}(machine, op);
  }
  template <class M>
  void run(M& machine) const {
    interpret(machine, *this);
  }
};

}  // namespace cule
