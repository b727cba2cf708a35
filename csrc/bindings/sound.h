// The sound of one frame for Python, where no backend plays it.
#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "console/session.h"

namespace cule {

namespace py = pybind11;

// The bytes of an object that may be written.
inline void* writable_bytes(const char* name, const py::buffer& object, size_t bytes) {
  const py::buffer_info info = object.request(true);
  const auto there = static_cast<size_t>(info.size * info.itemsize);
  const bool whole = info.ndim == 1 && info.strides[0] == info.itemsize;
  if (whole && there == bytes && reinterpret_cast<uintptr_t>(info.ptr) % 4 == 0) return info.ptr;
  throw std::invalid_argument(std::string("expected ") + name + " to be " + std::to_string(bytes) +
                              " bytes in a row, got " + std::to_string(there));
}

// Plays a frame of `sound` (a SoundState) and writes its samples.
inline void hear_one_frame(const py::buffer& sound, const py::buffer& samples) {
  auto* state = static_cast<SoundState*>(writable_bytes("sound", sound, sizeof(SoundState)));
  hear_alone({state, static_cast<uint32_t*>(writable_bytes("samples", samples, kFrameSamples))});
}

inline void bind_sound(py::module_& m) {
  m.attr("FRAME_SAMPLES") = kFrameSamples;
  m.attr("SILENCE") = kSilence & 0xFF;
  m.attr("SOUND_CHANNELS_BYTE") = offsetof(SoundState, channels);
  m.def("hear", &hear_one_frame, py::arg("sound"), py::arg("samples"));
}

}  // namespace cule
