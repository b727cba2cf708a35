// A console without a television: the bus, a cartridge and a frame of the 6507.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "cartridge/access.h"
#include "console/make_config.h"
#include "core_by_name.h"
#include "execution/decode_rom.h"
#include "execution/threaded_core.h"
#include "predecoded_fields.h"
#include "tia/render/span_renderer.h"

namespace py = pybind11;
using namespace cule;

namespace {

struct CheckedRam {
  uint8_t* bytes;
  TiaState* state;
  uint8_t* sound = nullptr;  // nobody listens
  uint32_t get(uint32_t index) const { return check(index), bytes[index]; }
  void set(uint32_t index, uint32_t value) const {
    check(index), bytes[index] = static_cast<uint8_t>(value);
  }
  TiaState& tia() const { return *state; }
  static constexpr bool kHears = false;
  void set_sound(uint32_t, uint32_t) const {}
  static void check(uint32_t index) {
    if (index >= 128) throw std::out_of_range("RAM");
  }
};
struct CheckedRom {
  const std::vector<uint8_t>* image;
  const std::vector<Predecoded>* predecoded;
  uint32_t operator()(uint32_t offset) const { return image->at(offset); }
  Predecoded predecoded_at(uint32_t offset) const { return predecoded->at(offset); }
  Predecoded marked_op(uint32_t offset) const { return predecoded_at(offset); }
  Predecoded operation(uint32_t opcode) const { return operation_of(opcode & 0xFF); }
};

// The predecoded instructions of `image`, and the one after its end.
std::vector<Predecoded> decode(const std::string& scheme, const std::vector<uint8_t>& image) {
  std::vector<Predecoded> predecoded(image.size() + 1, kFetchSlowly);
  decode_rom(map_of_scheme(scheme), image.data(), static_cast<uint32_t>(image.size()),
             predecoded.data());
  return predecoded;
}

std::vector<uint8_t> bytes_of(const std::string& bytes) { return {bytes.begin(), bytes.end()}; }
py::bytes copy_of(const std::array<uint8_t, 128>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Console {
  using M = Machine<CheckedRam, CheckedRom>;
  ConsoleConfig config{};
  std::vector<uint8_t> image;
  std::vector<Predecoded> predecoded;
  std::vector<uint32_t> entries, starts;
  std::array<uint8_t, 128> ram{};
  alignas(8) std::array<uint8_t, kCartridgeBytes> cartridge_bytes{};
  Devices devices{};
  TiaTrail trail{};
  TiaState tia{}, drawn{};  // as of the last write; as of the last `draw`
  uint32_t front = 0;       // the picture that was drawn last
  int64_t executed = 0;
  M machine;

  Console(const std::string& scheme, py::bytes rom, int first_line, int lines, bool pal,
          int line_limit, uint32_t inpt_wiring, uint32_t capacity)
      : config(make_config(scheme, first_line, lines, pal, line_limit, inpt_wiring)),
        image(bytes_of(rom)),
        predecoded(decode(scheme, image)),
        entries(capacity),
        starts(kMaxFrames * kSegments * sizeof(SegmentStart) / 4, kNoSegment),
        machine{config,
                {ram.data(), &tia},
                {&image, &predecoded},
                cartridge_bytes.data(),
                devices,
                trail,
                {entries.data(), capacity, 0, 0},
                config.map,
                static_cast<uint32_t>(image.size()),
                config.cycle_limit} {
    trail.starts = {{starts.data(), 1, 0}, 0};
    tia_reset(drawn);
    machine.begin_record(drawn);
    if (config.map.scheme == Scheme::kDPC)
      dpc_power_on(*reinterpret_cast<Dpc*>(cartridge_bytes.data()));
    machine.reset(0);
  }
  Console(const Console&) = delete;

  static ConsoleConfig make_config(const std::string& scheme, int first_line, int lines, bool pal,
                                   int line_limit, uint32_t inpt_wiring) {
    ConsoleConfig config{};
    config.map = map_of_scheme(scheme);
    config.format = {first_line * kClocksPerLine, (first_line + lines) * kClocksPerLine, 1};
    config.pal = pal;
    config.height = static_cast<uint32_t>(lines);
    config.cycle_limit = line_limit * kCyclesPerLine;
    config.inpt_wiring = inpt_wiring;
    return config;
  }

  static constexpr size_t kMaxFrames = 32;  // until they are drawn
  void begin_frame() {
    expect_room();
    machine.begin_frame();
  }
  bool run_frame(const std::string& core) {
    expect_room();
    if (core == "threaded") {
      const MicroCode<M> code(config.map, image.data(), static_cast<uint32_t>(image.size()),
                              predecoded.data());
      return draws_all(machine.run_frame(ThreadedCore<M>{code}));
    }
    return draws_all(machine.run_frame(CoreByName(core, &executed)));
  }
  void expect_room() const {
    if (trail.frame + 1 >= static_cast<int>(kMaxFrames))
      throw std::length_error("more frames than expected");
  }
  // While no frame runs, nothing else notes where segments begin.
  M& at_hand() {
    if (trail.frame < 0) trail.begin_frame();
    machine.begin_segments(machine.cycle);
    return machine;
  }
  void write(uint32_t address, uint32_t value) { at_hand().write(address, value, false); }
  void write_after_write(uint32_t address, uint32_t value) {
    at_hand().write(address, value, true);
  }
  void set_inputs(uint32_t swcha, uint32_t swchb, uint32_t inpt4, uint32_t inpt5, uint32_t charge0,
                  uint32_t charge1) {
    devices.inputs = Inputs{};
    devices.inputs.swcha = swcha;
    devices.inputs.swchb = swchb;
    devices.inputs.inpt4 = inpt4;
    devices.inputs.inpt5 = inpt5;
    devices.inputs.charge_cycles[0] = charge0;
    devices.inputs.charge_cycles[1] = charge1;
  }
  bool draws_all(int32_t reach) const { return reach == machine.config.format.last_clock; }
  // One instruction, as if it were a frame's last: where it waits for the timer, it does not skip
  // ahead.
  void step(const std::string& core) {
    at_hand().instructions_left = 1;
    const CoreByName run(core, &executed);
    Predecoded op = machine.look_ahead();
    if (length_of(op) == 0) op = run(machine, op);
    run(machine, op);
  }

  // The TIA part of what has been recorded, drawn; the buffer is empty afterwards.
  py::array_t<uint8_t> draw() {
    py::array_t<uint8_t> out(std::vector<py::ssize_t>{config.height, kLinePixels});
    std::vector<uint8_t> pictures(2 * out.size(), 0xEE);
    std::vector<uint8_t> row_of(2 * Pictures::kRows);
    LineBits words[LineRoom<LineBits>::kSize] = {};
    SpanRenderer view({pictures.data(), static_cast<uint32_t>(out.size()), row_of.data()}, front,
                     static_cast<int>(config.height), {words, 1});
    for (uint32_t i = 0; i < machine.buffer.count; ++i)
      replay_entry(drawn, config.format, entries[i], view);
    front = view.front;
    machine.begin_record(drawn);
    std::fill(starts.begin(), starts.end(), kNoSegment);
    std::copy_n(pictures.data() + front * out.size(), out.size(), out.mutable_data());
    return out;
  }
  std::vector<std::tuple<int, int, int>> recorded() const {
    std::vector<std::tuple<int, int, int>> list;
    for (uint32_t i = 0; i < machine.buffer.count; ++i) {
      list.push_back(
          {entry_cycle(entries[i]), entry_register(entries[i]), entry_value(entries[i])});
    }
    return list;
  }
};

}  // namespace

void bind_console(py::module_& m) {
  m.def("decode_rom", [](const std::string& scheme, const py::bytes& image) {
    std::vector<std::array<uint32_t, 4>> rows;
    for (const Predecoded op : decode(scheme, bytes_of(image))) rows.push_back(fields_of(op));
    return rows;
  });
  py::class_<Console>(m, "Console")
      .def(py::init<const std::string&, py::bytes, int, int, bool, int, uint32_t, uint32_t>(),
           py::arg("scheme"), py::arg("rom"), py::arg("first_line") = 4, py::arg("lines") = 8,
           py::arg("pal") = false, py::arg("line_limit") = 290, py::arg("inpt_wiring") = 0,
           py::arg("capacity") = 65536)
      .def("read", [](Console& c, uint32_t address) { return c.at_hand().read(address); })
      .def("write", &Console::write)
      .def("write_after_write", &Console::write_after_write)
      .def("reset", [](Console& c, uint32_t timer) { c.machine.reset(timer); })
      .def("begin_frame", &Console::begin_frame)
      .def("finish_frame", [](Console& c) { return c.draws_all(c.machine.finish_frame()); })
      .def("run_frame", &Console::run_frame, py::arg("core") = "static")
      .def("step", &Console::step, py::arg("core") = "static")
      .def("draw", &Console::draw)
      .def("recorded", &Console::recorded)
      .def_property("cycle", [](Console& c) { return c.machine.cycle; },
                    [](Console& c, int32_t v) { c.machine.cycle = v; })
      .def_property("bus", [](Console& c) { return c.machine.bus; },
                    [](Console& c, uint32_t v) { c.machine.bus = v; })
      .def_property("pc", [](Console& c) { return c.machine.r.pc; },
                    [](Console& c, uint32_t v) { c.machine.r.pc = v; })
      .def_property("a", [](Console& c) { return c.machine.r.a; },
                    [](Console& c, uint32_t v) { c.machine.r.a = v; })
      .def_property("x", [](Console& c) { return c.machine.r.x; },
                    [](Console& c, uint32_t v) { c.machine.r.x = v; })
      .def_property("y", [](Console& c) { return c.machine.r.y; },
                    [](Console& c, uint32_t v) { c.machine.r.y = v; })
      .def_property("s", [](Console& c) { return c.machine.r.s; },
                    [](Console& c, uint32_t v) { c.machine.r.s = v; })
      .def_property_readonly("p", [](Console& c) { return pack_status(c.machine.r); })
      .def_readonly("executed", &Console::executed)
      .def_property_readonly("instructions_left",
                             [](Console& c) { return c.machine.instructions_left; })
      .def_property_readonly("jammed", [](Console& c) { return c.machine.r.jammed; })
      .def_property_readonly("faults", [](Console& c) { return c.devices.faults; })
      .def_property_readonly("frame_ended", [](Console& c) { return c.machine.frame_ended; })
      .def_property_readonly("frame_open", [](Console& c) { return c.devices.ports.frame_open; })
      .def_property_readonly("scanlines", [](Console& c) { return c.devices.ports.scanlines; })
      .def_property_readonly("ram", [](Console& c) { return copy_of(c.ram); })
      .def_property_readonly("cartridge_bytes",
                             [](Console& c) { return copy_of(c.cartridge_bytes); })
      .def("set_inputs", &Console::set_inputs, py::arg("swcha") = 0xFF, py::arg("swchb") = 0x3F,
           py::arg("inpt4") = 0x80, py::arg("inpt5") = 0x80, py::arg("charge0") = 0,
           py::arg("charge1") = 0);
  m.def("charge_cycles", &charge_cycles);
}
