// The GPU's way of drawing a step, in segments, on the CPU, for tests.
#include <pybind11/pybind11.h>

#include <cstring>
#include <vector>

#include "console/core.h"
#include "kernels/memory.h"
#include "kernels/segments.h"
#include "kernels/step.h"

namespace py = pybind11;

namespace {

using namespace cule;

// Steps env 0 of the batch at `address`, and draws it whole or in segments.
void step(uintptr_t address, bool in_segments) {
  Batch batch;
  std::memcpy(&batch, reinterpret_cast<const void*>(address), sizeof batch);
  std::vector<uint32_t> entries(batch.buffer_capacity), segments(kSegmentWords * (segment_slots(batch.options) + 1));
  batch.segments = segments.data();
  Devices devices;
  TiaFollower follower{};
  PlainMachine machine = make_plain_machine(batch, 0, batch.records, 0, entries.data(), devices, follower);
  if (!in_segments) {
    step_frames(batch, 0, machine, DynamicCore{});
    draw_frames(batch, 0, entries.data(), follower);
    return;
  }
  follower.starts = segment_starts(batch);
  clear_starts(batch, 0);
  step_frames(batch, 0, machine, DynamicCore{});
  leave_end(batch, 0, machine);
  settle(batch, 0);
  uint32_t found = 0;
  for (size_t slot = 0; slot < segment_slots(batch.options); ++slot) found |= draw_segment(batch, 0, slot, entries.data());
  TiaState tia;
  load_part(batch.records, 0, offsetof(EnvRecord, tia), tia);
  tia.collisions |= static_cast<uint16_t>(found);
  store_part(batch.records, 0, offsetof(EnvRecord, tia), tia);
}

}  // namespace

PYBIND11_MODULE(segments_module, m) { m.def("step", &step, py::arg("address"), py::arg("in_segments")); }
