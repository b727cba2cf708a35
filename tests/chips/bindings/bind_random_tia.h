// The TIA from random states: collisions by a search and pixel by pixel; writes that take effect at
// once and in a replay.
#pragma once

#include <cstring>
#include <random>
#include <utility>

#include "../pixel_view.h"
#include "bindings.h"
#include "searched.h"
#include "tia/collisions/prefilter.h"
#include "tia/deferred_beam.h"

namespace py = pybind11;
using namespace cule;

namespace {

// Random registers and positions; the beam is at the start of line 0.
TiaState random_state(uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t bound) { return static_cast<uint8_t>(random() % bound); };
  TiaState tia{};
  tia_reset(tia);
  for (uint32_t object = 0; object < kPlayfield; ++object) {
    set_position(tia, object, below(kLinePixels));
    tia.motion[object] = below(16);
  }
  tia.playfield = random() & random() & random() & 0xFFFFF;
  tia.ctrlpf = below(256);
  tia.reflect_now = below(2);
  for (uint32_t which = 0; which < 2; ++which) {
    tia.nusiz[which] = below(256);
    tia.grp[which] = below(256);
    tia.grp[2 + which] = below(256);
    tia.refp[which] = below(2);
    tia.vdelp[which] = below(2);
    tia.skip_first[which] = below(2);
    tia.enam[which] = below(2);
    tia.resmp[which] = below(4) == 0;
  }
  tia.enabl[0] = below(2);
  tia.enabl[1] = below(2);
  tia.vdelbl = below(2);
  tia.missile0_shape = below(3);
  tia.stars_on = below(4) == 0;
  tia.stars_phase = below(4);
  return tia;
}

// The collisions by a search, and pixel by pixel, from the same entries.
struct Collisions {
  TiaFormat format{0, 1 << 20, 1};
  TiaState oracle;
  PixelView pixels;
  Searched searched;
  TiaState early;  // as the CPU part keeps it
  ShownBounds seen;
  PlacesLeft left{};

  explicit Collisions(uint32_t seed)
      : oracle(random_state(seed)), searched(oracle), early(oracle), seen(early) {
    left.begin(early, kAllCollisions);
  }
  void write(int32_t cycle, uint32_t reg, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, reg, value);
    searched.write(entry);
    replay_entry(oracle, format, entry, pixels);
    if (reg >= kMarkFrameBegin) return;
    apply_write(early, format, AnyRegister{reg}, value, entry_cycle(entry), left);
    seen.note(early, AnyRegister{reg}, value);
  }
  uint32_t find(uint32_t latches) const { return searched.find(format, latches); }
  uint32_t in_reach(uint32_t latches) const {
    return latches_within_bounds(early, left, seen, latches & possible_latches(seen.on()));
  }
  uint32_t expected() const {
    TiaState tia = oracle;
    PixelView view;
    replay_entry(tia, format, searched.last(), view);
    return tia.collisions;
  }
};

// A state whose writes take effect at once, before the beam is there, and one whose entries are
// replayed.
struct DeferredBeam {
  struct BlindView : NoView {
    void show(const TiaState&, int, int, int) {}
  };
  TiaFormat format{4 * kClocksPerLine, 214 * kClocksPerLine, 1};
  TiaState tia, oracle;
  BlindView view;
  PlacesLeft left{};
  bool known_alike = true;

  explicit DeferredBeam(uint32_t seed) : tia(random_state(seed)), oracle(tia) {
    move_both(0, kMarkFrameBegin, 0);
  }

  // Does a write as a translated block does: the register is known at compile time.
  template <size_t... kRegs>
  bool write_known(TiaState& to, uint32_t reg, uint32_t value, int32_t cycle,
                   std::index_sequence<kRegs...>) {
    bool did = false;
    ((reg == kRegs &&
      (did = apply_write(to, format, KnownRegister<kRegs>{}, value, cycle, left))), ...);
    return did;
  }

  // Returns whether the write changes anything.
  bool write(int32_t cycle, uint32_t reg, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, reg, value);
    TiaState twin = tia;
    const bool twin_changes = write_known(twin, reg, value, entry_cycle(entry),
                                          std::make_index_sequence<tia_write::CXCLR + 1>{});
    const bool changes = apply_write(tia, format, AnyRegister{reg}, value, entry_cycle(entry),
                                     left);
    if (changes) replay_entry(oracle, format, entry, view);
    known_alike = changes == twin_changes && std::memcmp(&tia, &twin, sizeof tia) == 0;
    return changes;
  }
  void move_both(int32_t cycle, uint32_t mark, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, mark, value);
    apply_mark(tia, format, entry);
    replay_entry(oracle, format, entry, view);
  }
  // Whether both are the same once the beam is at the same place, and the last write did the same
  // with its register known.
  bool agrees() const {
    if (!known_alike) return false;
    TiaState moved = tia, drawn = oracle;
    BlindView blind;
    draw_until(drawn, format, tia.cursor, blind);
    move_beam(moved, format, drawn.cursor);
    moved.collisions = drawn.collisions = 0;
    return std::memcmp(&moved, &drawn, sizeof moved) == 0;
  }
  // Whether drawing to `clock` at once gives the same state as drawing to `between` first.
  bool moves_as_it_draws(int32_t clock, int32_t between) const {
    TiaState moved = oracle, stopped = oracle, drawn = oracle;
    BlindView blind;
    move_beam(moved, format, clock);
    move_beam(stopped, format, between);
    move_beam(stopped, format, clock);
    draw_until(drawn, format, clock, blind);
    return std::memcmp(&moved, &drawn, sizeof moved) == 0 &&
           (between > clock || std::memcmp(&stopped, &drawn, sizeof drawn) == 0);
  }
  int cursor() const { return oracle.cursor; }
};

}  // namespace

void bind_random_tia(py::module_& m) {
  py::class_<Collisions>(m, "Collisions")
      .def(py::init<uint32_t>(), py::arg("seed"))
      .def("write", &Collisions::write)
      .def("find", &Collisions::find)
      .def("in_reach", &Collisions::in_reach)
      .def_property_readonly("expected", &Collisions::expected);
  py::class_<DeferredBeam>(m, "DeferredBeam")
      .def(py::init<uint32_t>(), py::arg("seed"))
      .def("write", &DeferredBeam::write)
      .def("mark", &DeferredBeam::move_both)
      .def("agrees", &DeferredBeam::agrees)
      .def("moves_as_it_draws", &DeferredBeam::moves_as_it_draws)
      .def_property_readonly("cursor", &DeferredBeam::cursor);
}
