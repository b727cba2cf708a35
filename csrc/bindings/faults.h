// The bits of an env's faults by name, as Python knows them.
#pragma once

#include <pybind11/pybind11.h>

#include "console/config.h"

namespace cule {

inline pybind11::dict faults() {
  using pybind11::arg;
  return pybind11::dict(arg("jam") = static_cast<int>(kFaultJam),
                        arg("buffer_full") = static_cast<int>(kFaultBufferFull),
                        arg("mode_unreachable") = static_cast<int>(kFaultModeUnreachable),
                        arg("random_exhausted") = static_cast<int>(kFaultRandomExhausted),
                        arg("frame_lost") = static_cast<int>(kFaultFrameLost),
                        arg("impossible_state") = static_cast<int>(kFaultImpossibleState));
}

}  // namespace cule
