// A step of env 0 drawn as on a CPU, and which pixels its objects have in each frame, for tests.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "../chips/pixel_view.h"
#include "execution/interpreter.h"
#include "kernels/cpu/draw_frames.h"
#include "kernels/memory.h"
#include "kernels/play.h"

namespace py = pybind11;

namespace {

using namespace cule;

constexpr uint16_t kNoPixel = 0xFFFF;  // no color: they are bytes
constexpr size_t kFramePixels = size_t{Pictures::kRows} * kNumTiaObjects * kLinePixels;

// Writes down for each pixel which objects it has, in which color, one by one and without a cache.
struct MaskView {
  static constexpr bool kSeesColors = true;
  std::vector<uint16_t> pixels;  // [frames][lines][objects][columns]
  int height;

  void begin_picture() {}
  void objects_changed(uint32_t) {}
  void grey_out(int) {}
  void next_frame() { pixels.resize(pixels.size() + kFramePixels, kNoPixel); }
  void show(const TiaState& tia, int line, int begin, int end) {
    if (line >= height || tia.vblank & 2) return;
    uint16_t* frame = pixels.data() + pixels.size() - kFramePixels;
    for (int x = tia.hmove_blank && begin < kCombPixels ? kCombPixels : begin; x < end; ++x) {
      for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
        if (!covers(tia, object, x)) continue;
        const uint8_t color = color_of(tia, object, x);
        const size_t at = static_cast<size_t>(line) * kNumTiaObjects + object;
        if (color != tia.colubk) frame[at * kLinePixels + static_cast<size_t>(x)] = color;
      }
    }
  }

 private:
  static uint8_t color_of(const TiaState& tia, uint32_t object, int x) {
    if (object == kPlayfield && score_or_priority(tia) & 2) return tia.colup[x >= kLinePixels / 2];
    if (object == kBall || object == kPlayfield) return tia.colupf;
    return tia.colup[object == kPlayer1 || object == kMissile1];
  }
};

void expect_same(const FrameBoxes& boxes, const std::vector<int16_t>& found) {
  // Of row 0 there are two numbers.
  if (found[0] != boxes.rows[0] || found[1] != boxes.rows[1] ||
      !std::equal(found.begin() + kObjectFields, found.end(), boxes.rows + kObjectFields))
    throw std::runtime_error("expected the boxes that were found beside drawing");
}

// What a GPU keeps of the runs and boxes of an env's segments.
struct SeenLogs {
  std::vector<uint32_t> runs, boxes, changed;
  uint32_t num_changed = 0;

  SeenLogs()
      : runs(size_t{kSeenFrames} * kSegments * kRunLogWords),
        boxes(size_t{kSeenFrames} * kSegments * kSegmentBoxWords),
        changed(size_t{kSeenFrames} * kSegments) {}
};

// Whoever finds boxes apart from drawing looks again only at other scanlines than drawing does. So
// does a GPU, which writes down the runs of each segment first. Returns in how many segments these
// have changed, in how many they have not, and how many frames a GPU looks at again.
std::array<int, 3> expect_same_boxes(Batch batch, const Recording& recording, SeenLogs& logs) {
  std::vector<LineBits> words(LineRoom<LineBits>::kSize);
  batch.runs = logs.runs.data();
  batch.segment_boxes = logs.boxes.data();
  batch.changed_logs = logs.changed.data();
  batch.num_changed_logs = &logs.num_changed;
  std::array<int, 3> counts{};
  for (uint32_t seen = 0; seen < kSeenFrames; ++seen) {
    const StepTrace& trace = batch.traces[0];
    if (!has_seen(trace, seen)) continue;
    const uint32_t frame = trace.frames - 1u - seen;
    const FrameBoxes boxes = boxes_of_frame(batch, 0, frame);
    const std::vector<int16_t> found(boxes.rows,
                                     boxes.rows + (boxes.count() + 1) * kObjectFields);
    see_frame(batch, 0, recording, frame);
    expect_same(boxes, found);
    if (trace.frames == 1) continue;  // else the boxes of the frame before would move on again
    logs.num_changed = 0;
    for (uint32_t segment = 0; segment < kSegments; ++segment)
      write_runs(batch, 0, recording, seen, segment, {words.data(), 1});
    boxes.count() = boxes.left_out() = -1;
    FrameRoom room;
    SegmentRoom segment_room;
    for (uint32_t i = 0; i < 3; ++i) join_runs(batch, i, 3, segment_room, OneLane{});
    join_segments(batch, 0, seen, room, OneLane{});
    counts[2] += boxes.count() == kLookAgain;
    see_again(batch, 0, recording, seen);
    expect_same(boxes, found);
    const int changed = static_cast<int>(logs.num_changed);
    counts[0] += changed;
    counts[1] += static_cast<int>(kSegments) - changed;
    // With too little room for the runs of a segment, whose log is another one in the next step.
    const uint32_t number = run_log_number(0, seen, kSegments / 2);
    run_log_of(batch, number)[0] = kMostRunEntries + 2;
    logs.changed[0] = number;
    logs.num_changed = 1;
    join_runs(batch, 0, 1, segment_room, OneLane{});
    join_segments(batch, 0, seen, room, OneLane{});
    if (boxes.count() != kLookAgain) throw std::runtime_error("expected to look again");
    see_again(batch, 0, recording, seen);
    expect_same(boxes, found);
  }
  return counts;
}

py::tuple play_and_see(uintptr_t address, bool wide, SeenLogs& logs) {
  Batch batch;
  std::memcpy(&batch, reinterpret_cast<const void*>(address), sizeof batch);
  std::vector<uint32_t> entries(batch.buffer_capacity), starts(segment_words(batch.options));
  TiaTrail trail{};
  trail.starts = starts_of_one_env(starts.data());
  clear_starts(batch, trail.starts);
  TiaState tia{}, before;
  load_part(batch.records, 0, offsetof(EnvRecord, tia), before);
  Devices devices{};
  SoundState unheard{};
  PlainMachine machine =
      make_plain_machine(batch, 0, devices, {entries.data(), trail, tia, unheard});
  play_frames(batch, 0, machine, DynamicCore{});
  store_end_state(batch, 0, machine);
  const ConsoleConfig& config = config_of(batch, 0);
  MaskView view{{}, static_cast<int>(config.height)};
  view.next_frame();
  for (uint32_t i = 0; i < batch.traces[0].entries; ++i) {
    replay_entry(before, config.format, entries[i], view);
    if (entry_register(entries[i]) == kMarkFrameEnd) view.next_frame();
  }
  const Recording recording{entries.data(), trail.starts};
  save_pictures(batch, 0, OneLane{});
  store_step_end(batch, 0, trail.starts);
  if (wide) draw_frames<Pixels32>(batch, 0, recording);
  else draw_frames<Pixels16>(batch, 0, recording);
  const auto [changed, unchanged, again] = expect_same_boxes(batch, recording, logs);
  list_objects(batch, 0, OneLane{});
  const auto frames = static_cast<py::ssize_t>(view.pixels.size() / kFramePixels) - 1;
  const std::vector<py::ssize_t> shape{frames, Pictures::kRows, kNumTiaObjects, kLinePixels};
  return py::make_tuple(py::array_t<uint16_t>(shape, view.pixels.data()), changed, unchanged,
                        again);
}

}  // namespace

inline void bind_objects(py::module_& m) {
  py::class_<SeenLogs>(m, "SeenLogs").def(py::init());
  m.def("step_and_see", &play_and_see, py::arg("address"), py::arg("wide"), py::arg("logs"));
}
