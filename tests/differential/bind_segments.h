// The ways in which a step is drawn, on the CPU, for tests: entry by entry, which is the reference,
// in segments as on a GPU, and in frames as in the CPU backend. And the TIA's state that the CPU
// part keeps, against a replay of its entries.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "../chips/pixel_view.h"
#include "execution/interpreter.h"
#include "kernels/cpu/draw_frames.h"
#include "kernels/memory.h"
#include "kernels/play.h"

namespace py = pybind11;

namespace {

using namespace cule;

// A view whose pixels are not used.
struct BlindView {
  static constexpr bool kSeesColors = true;
  void begin_picture() {}
  void objects_changed(uint32_t) {}
  void grey_out(int) {}
  void show(TiaState&, int, int, int) {}
};

TiaState load_tia(const Batch& batch) {
  TiaState tia;
  load_part(batch.records, 0, offsetof(EnvRecord, tia), tia);
  return tia;
}
void store_tia(const Batch& batch, const TiaState& tia) {
  store_part(batch.records, 0, offsetof(EnvRecord, tia), tia);
}

// Whether two states are the same, except for the latches, which the CPU part does not know.
bool same_but_latches(TiaState a, TiaState b) {
  a.collisions = b.collisions = 0;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Env 0 of the batch at an address, and what its step works with.
struct Step {
  Batch batch;
  std::vector<uint32_t> entries, starts;
  TiaTrail trail{};
  TiaState tia{};
  Devices devices{};
  SoundState unheard{};

  explicit Step(uintptr_t address) {
    std::memcpy(&batch, reinterpret_cast<const void*>(address), sizeof batch);
    entries.resize(batch.buffer_capacity);
    starts.resize(segment_words(batch.options));
    trail.starts = starts_of_one_env(starts.data());
    clear_starts(batch, trail.starts);
  }
  Step(const Step&) = delete;
  PlainMachine machine() {
    return make_plain_machine(batch, 0, devices, {entries.data(), trail, tia, unheard});
  }
  Recording recording() const { return {entries.data(), trail.starts}; }
  const TiaFormat& format() const { return config_of(batch, 0).format; }
  template <class Core>
  void play(const Core& core) {
    PlainMachine m = machine();
    play_frames(batch, 0, m, core);
    store_end_state(batch, 0, m);
  }
};

// Every frame, entry by entry.
void draw_by_entries(const Step& step) {
  const Batch& batch = step.batch;
  const StepTrace& trace = batch.traces[0];
  save_pictures(batch, 0, OneLane{});
  separate_rows(batch, 0, OneLane{});
  LineBits words[LineRoom<LineBits>::kSize] = {};
  ScreenState& screen = screen_of(batch, 0);
  SpanRenderer view(pictures_of(batch, 0), screen.front,
                    static_cast<int>(config_of(batch, 0).height), {words, 1});
  TiaState tia = load_tia(batch);
  const uint32_t first_pooled = first_pooled_between(batch.options, trace);
  for (uint32_t i = 0, frame = 0; i < trace.entries; ++i) {
    replay_entry(tia, step.format(), step.entries[i], view);
    if (entry_register(step.entries[i]) != kMarkFrameEnd) continue;
    if (frame >= first_pooled && frame + 1u < trace.frames) {
      pool_between(batch, 0, trace.plan, frame == first_pooled, view.pictures[view.front], 0, ~0u);
    }
    ++frame;
  }
  store_tia(batch, tia);
  screen.front = static_cast<uint8_t>(view.front);
}

void draw_by_segments(const Step& step) {
  save_pictures(step.batch, 0, OneLane{});
  store_step_end(step.batch, 0, step.trail.starts);
  LineBits words[LineRoom<LineBits>::kSize] = {};
  uint32_t found = 0;
  for (size_t slot = 0; slot < segment_slots(step.batch.options); ++slot) {
    found |= draw_part<Pixels16>(step.batch, 0, step.recording(), slot, 1, {words, 1});
  }
  TiaState tia = load_tia(step.batch);
  tia.collisions |= static_cast<uint16_t>(found);
  store_tia(step.batch, tia);
}

void play_and_draw(uintptr_t address, const std::string& way) {
  Step step(address);
  step.play(DynamicCore{});
  if (way == "entries") {
    draw_by_entries(step);
  } else if (way == "segments") {
    draw_by_segments(step);
  } else if (way == "frames") {
    save_pictures(step.batch, 0, OneLane{});
    store_step_end(step.batch, 0, step.trail.starts);
    draw_frames<Pixels16>(step.batch, 0, step.recording());
  } else if (way == "frames_by_32") {
    save_pictures(step.batch, 0, OneLane{});
    store_step_end(step.batch, 0, step.trail.starts);
    draw_frames<Pixels32>(step.batch, 0, step.recording());
  } else {
    throw std::invalid_argument("expected entries, segments, frames or frames_by_32, got " + way);
  }
}

// The state where segment `segment` of frame number `frame` begins, by replaying all entries from
// `tia` on.
TiaState state_at(const Step& step, TiaState tia, uint32_t frame, int segment) {
  const int32_t begin = segment_clock(step.format(), segment);
  BlindView view;
  uint32_t i = 0;
  for (; frame > 0; ++i) {
    frame -= entry_register(step.entries[i]) == kMarkFrameEnd;
    replay_entry(tia, step.format(), step.entries[i], view);
  }
  for (; i < step.batch.traces[0].entries; ++i) {
    if (ends_drawing(step.entries[i]) || effect_of<BlindView>(tia, step.entries[i]).clock > begin)
      break;
    replay_entry(tia, step.format(), step.entries[i], view);
  }
  draw_until(tia, step.format(), begin, view);
  return tia;
}

// Steps env 0, and compares the TIA's state that the CPU part keeps with a replay of its entries.
// Returns the number of segments.
int play_checked(uintptr_t address) {
  Step step(address);
  const TiaState before = load_tia(step.batch);
  step.play(DynamicCore{});
  const StepTrace& trace = step.batch.traces[0];
  int begun = 0;
  for (size_t slot = 0; slot < segment_slots(step.batch.options); ++slot) {
    if (step.trail.starts.entry_of(slot) == kNoSegment) continue;
    const int segment = static_cast<int>(slot % kSegments);
    const int32_t begin = segment_clock(step.format(), segment);
    SegmentStart at;
    step.trail.starts.load(slot, at);
    // On to where the segment begins, with all of it still to be drawn.
    BlindView view;
    while (at.entry < trace.entries && !ends_drawing(step.entries[at.entry]) &&
           effect_of<BlindView>(at.tia, step.entries[at.entry]).clock <= begin) {
      const Effect effect = effect_of<BlindView>(at.tia, step.entries[at.entry++]);
      move_beam(at.tia, step.format(), effect.clock);
      take_effect(at.tia, step.format(), effect, view);
    }
    move_beam(at.tia, step.format(), begin);
    if (!same_but_latches(
            at.tia, state_at(step, before, static_cast<uint32_t>(slot / kSegments), segment))) {
      throw std::logic_error("segment " + std::to_string(slot) +
                             " does not begin as a replay does");
    }
    ++begun;
  }
  draw_by_entries(step);
  if (trace.entries && !same_but_latches(step.tia, load_tia(step.batch)))
    throw std::logic_error("the step does not end as a replay does");
  return begun;
}

// Interprets, and compares every collision register that is read with a replay of the entries so
// far.
struct ReadsChecked : AnyGame {
  const Step* step;
  TiaState* replayed;  // as of entry `*at`
  uint32_t* at;
  int* reads;

  template <class M>
  Predecoded operator()(M& m, Predecoded op) const {
    const uint32_t latch = latch_read_by(m, op);
    const Predecoded next = DynamicCore{}(m, op);
    if (latch <= tia_read::CXPPMM) check(m, latch);
    return next;
  }
  template <class M>
  void run(M& m) const {
    interpret(m, *this);
  }

 private:
  static constexpr uint32_t kNone = ~0u;

  template <class M>
  static uint32_t latch_read_by(const M& m, Predecoded op) {
    if (!(op.control & kReads) || (op.control & (kWrites | kRare))) return kNone;
    M copy = m;
    InterpreterBus<M> fast(copy);
    const uint32_t address = effective_address(DynamicDecode{op}, fast, operand_of(op));
    return (address & 0x1080) == 0 ? address & 0x0F : kNone;
  }
  template <class M>
  void check(const M& m, uint32_t latch) const {
    const TiaFormat& format = step->format();
    PixelView view;
    for (; *at < m.buffer.count; ++*at) replay_entry(*replayed, format, step->entries[*at], view);
    TiaState now = *replayed;
    replay_entry(now, format, encode_entry(m.cycle, kMarkTouch, 0), view);
    if ((m.bus & 0xC0) != collision_register(now.collisions, latch)) {
      throw std::logic_error("collision register " + std::to_string(latch) + " reads " +
                             std::to_string(m.bus & 0xC0) + ", and not " +
                             std::to_string(collision_register(now.collisions, latch)));
    }
    ++*reads;
  }
};

// Steps env 0, and returns how many collision registers were read.
int play_reading(uintptr_t address) {
  Step step(address);
  TiaState replayed = load_tia(step.batch);
  uint32_t at = 0;
  int reads = 0;
  step.play(ReadsChecked{{}, &step, &replayed, &at, &reads});
  draw_by_entries(step);
  return reads;
}

// Writes to a random register of the TIA, and sometimes to the one before it, too, as a jump to a
// subroutine pushes two bytes.
template <class Below>
void write_at_random(PlainMachine& m, const Below& below) {
  using namespace tia_write;
  const uint32_t rare = below(2) ? VBLANK : CXCLR;
  const uint32_t reg = below(20) ? NUSIZ0 + below(HMCLR - NUSIZ0 + 1) : rare;
  // Rarely a value that makes all objects wide, and the beam mostly on.
  const uint32_t any = below(3) ? below(256) & below(256) : 2;
  const uint32_t value = reg == VBLANK ? 2 * (below(4) == 0) : any;
  if (is_recorded(reg)) m.write_tia(AnyRegister{reg}, value, false);
  const bool pushed = below(10) == 0 && is_recorded(reg - 1);
  if (pushed) m.write_tia(AnyRegister{reg - 1}, below(256), true);
}

// Compares the `value` of a collision register, read at `cycle`, with `replayed`, the state after
// all entries so far. Returns whether one of its latches is set.
bool check_read(uint32_t value, uint32_t reg, int32_t cycle, TiaState replayed,
                const TiaFormat& format, const std::string& when) {
  PixelView view;
  replay_entry(replayed, format, encode_entry(cycle, kMarkTouch, 0), view);
  const uint32_t expected = collision_register(replayed.collisions, reg);
  if ((value & 0xC0) != expected) {
    throw std::logic_error(when + ", cycle " + std::to_string(cycle) + ": register " +
                           std::to_string(reg) + " reads " + std::to_string(value & 0xC0) +
                           ", and not " + std::to_string(expected));
  }
  return expected != 0;
}

// Accesses the TIA at random for some frames, as no program does: objects are on and near each
// other most of the time, and are moved, resized and recolored anywhere in a scanline; frames end,
// are cut off, or go on. Compares what is read, and at each frame's end the latches that were read,
// with a replay of the entries, one by one. Returns how many reads found a latch set.
int read_at_random(uintptr_t address, uint32_t seed) {
  using namespace tia_write;
  Step step(address);
  const TiaFormat& format = step.format();
  std::mt19937 random(seed);
  const auto below = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  PlainMachine m = step.machine();
  TiaState replayed = load_tia(step.batch);
  m.load(ConsoleState{});
  ports_reset(step.devices.ports);
  m.begin_record(replayed);
  uint32_t at = 0;
  int found = 0;
  PixelView view;
  const auto replay = [&] {
    for (; at < m.buffer.count; ++at) replay_entry(replayed, format, step.entries[at], view);
  };
  const uint32_t busy = 10 + below(60);  // cycles between accesses
  const uint32_t quiet = below(30);      // lines without any
  const uint32_t first = below(8), registers = 1 + below(8);  // those that are read
  const uint32_t seldom = 4 + below(60);
  const auto strobe_stars = [&] {
    m.write_tia(AnyRegister{HMM0}, 0x70, false);
    m.write_tia(AnyRegister{HMOVE}, 0, false);
    m.cycle += static_cast<int32_t>(kStarsHmoveDistance);
    m.write_tia(AnyRegister{HMM0}, 0x60, false);
  };
  for (int frame = 0; frame < step.batch.options.frameskip; ++frame) {
    const std::string when = "seed " + std::to_string(seed) + ", frame " + std::to_string(frame);
    m.begin_frame();
    const int32_t last = static_cast<int32_t>(60 + below(220)) * kCyclesPerLine;
    const int32_t silent = last - static_cast<int32_t>(quiet) * kCyclesPerLine;
    int32_t end = stretch_end(format, m.cycle);
    for (; m.cycle < last; end += kStretchCycles) {
      m.begin_stretch(end, kLongestInstruction);
      while (m.cycle < end) {
        m.cycle += static_cast<int32_t>(below(4) ? 1 + below(busy) : 3);  // STA after STA
        if (m.cycle >= silent) continue;
        if (below(500) == 0) strobe_stars();
        if (below(seldom) == 0) {
          const uint32_t reg = (first + below(registers)) % 8;
          const uint32_t value = m.read_chip(reg);
          replay();
          found += check_read(value, reg, m.cycle, replayed, format, when);
        } else {
          write_at_random(m, below);
        }
      }
    }
    m.frame_ended = below(3) != 0;
    m.finish_frame();
    replay();
    search_late(m.trail, format, step.tia);
    if ((replayed.collisions ^ step.tia.collisions) & m.latches_read) {
      throw std::logic_error(when + " ends with other latches than a replay of its entries");
    }
    if (step.devices.faults & kFaultBufferFull) throw std::logic_error("the buffer is too small");
  }
  return found;
}

}  // namespace

inline void bind_segments(py::module_& m) {
  m.def("step", &play_and_draw, py::arg("address"), py::arg("way"));
  m.def("step_checked", &play_checked, py::arg("address"));
  m.def("step_reading", &play_reading, py::arg("address"));
  m.def("read_at_random", &read_at_random, py::arg("address"), py::arg("seed"));
}
