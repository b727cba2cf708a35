// The TIA, fed through encoded entries. It draws through a SpanRenderer, and keeps what is written
// for a search for collisions.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "searched.h"
#include "tia/render/span_renderer.h"

namespace py = pybind11;
using namespace cule;

namespace {

struct Tia {
  TiaState tia{};
  Searched searched{tia};
  TiaFormat format;
  std::vector<uint8_t> pictures, row_of;
  LineBits words[LineRoom<LineBits>::kSize] = {};
  SpanRenderer view;
  uint32_t height;

  Tia(int first_line, int lines, bool hmove_blanks)
      : format{first_line * kClocksPerLine, (first_line + lines) * kClocksPerLine, hmove_blanks},
        pictures(static_cast<size_t>(2 * lines * kLinePixels), 0xEE),
        row_of(2 * Pictures::kRows),
        view{{pictures.data(), static_cast<uint32_t>(lines * kLinePixels), row_of.data()},
             0,
             lines,
             {words, 1}},
        height(static_cast<uint32_t>(lines)) {
    tia_reset(tia);
  }
  Tia(const Tia&) = delete;

  void write(int32_t cycle, uint32_t reg, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, reg, value);
    replay_entry(tia, format, entry, view);
    searched.write(entry);
    if (reg == kMarkFrameBegin) searched = Searched(tia);
  }
  py::array_t<uint8_t> picture(bool back) const {
    py::array_t<uint8_t> out(std::vector<py::ssize_t>{height, kLinePixels});
    const uint8_t* from = pictures.data() + (view.front ^ back) * height * kLinePixels;
    std::copy(from, from + height * kLinePixels, out.mutable_data());
    return out;
  }
  template <class Word>
  std::vector<int> object_bits(uint32_t object) const {
    std::vector<int> bits;
    Word words[LineRoom<Word>::kSize];
    LineCache<Word> cache{{words, 1}};
    cache.refresh(tia, 0);
    for (int x = 0; x < kLinePixels; ++x) {
      const Word shown = cache.bits.at(object, x / cache.kBits);
      bits.push_back(static_cast<int>(shown >> x % cache.kBits & 1));
    }
    return bits;
  }
  std::vector<int> positions() const {
    std::vector<int> positions;
    for (uint32_t object = 0; object < kPlayfield; ++object) {
      positions.push_back(position_of(tia, object));
    }
    return positions;
  }
  uint32_t collisions_unseen() const {
    const uint32_t before = searched.after_clear ? 0 : searched.start.tia.collisions;
    return before | searched.find(format, kAllCollisions);
  }
  uint32_t latches_of(uint32_t reg) const { return collision_register(tia.collisions, reg); }
};

}  // namespace

void bind_tia(py::module_& m) {
  py::class_<Tia>(m, "Tia")
      .def(py::init<int, int, bool>(), py::arg("first_line"), py::arg("lines"),
           py::arg("hmove_blanks") = true)
      .def("write", &Tia::write)
      .def("picture", &Tia::picture, py::arg("back") = false)
      .def("object_bits_64", &Tia::object_bits<uint64_t>)
      .def("object_bits_32", &Tia::object_bits<uint32_t>)
      .def_property_readonly("positions", &Tia::positions)
      .def_property_readonly("collisions", [](const Tia& t) { return t.tia.collisions; })
      .def_property_readonly("collisions_unseen", &Tia::collisions_unseen)
      .def("collision_register", &Tia::latches_of);
  m.def("hmove_distance", &hmove_distance);
  m.def("entry", [](int32_t cycle, uint32_t reg, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, reg, value);
    return std::make_tuple(entry_cycle(entry), entry_register(entry), entry_value(entry));
  });
  m.def("is_recorded", &is_recorded);
}
