// One game's translated code on the CPU, beside the interpreter, for tests. RUN_BLOCK_CASES is the file of its blocks, GAME its index.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>
#include <string>
#include <vector>

#include "console/block.h"
#include "kernels/draw.h"
#include "kernels/memory.h"
#include "kernels/step.h"

namespace py = pybind11;

namespace {

using namespace cule;

struct RunBlock {
  int64_t* executed;  // instructions in blocks
  template <class M>
  bool operator()(M& m, uint32_t number) const {
    const int32_t before = m.instructions_left;
    const bool whole = run(m, number);
    *executed += before - m.instructions_left;
    return whole;
  }

 private:
  template <class M>
  static bool run(M& m, uint32_t number) {
    switch (number) {
#include RUN_BLOCK_CASES
      default: return false;
    }
  }
};

// Steps env 0 of the batch at `address` and draws what it shows. Returns what it left in the instruction buffer, and how many
// instructions were executed in blocks.
py::tuple step(uintptr_t address, bool translated) {
  Batch batch;
  std::memcpy(&batch, reinterpret_cast<const void*>(address), sizeof batch);
  std::vector<uint32_t> entries(batch.buffer_capacity);
  int64_t executed = 0;
  Devices devices;
  TiaFollower follower{};
  PlainMachine machine = make_plain_machine(batch, 0, batch.records, 0, entries.data(), devices, follower);
  if (translated) {
    machine.rom.marked_ops = batch.marked_ops;
    step_frames(batch, 0, machine, TranslatedCore<RunBlock, GAME>{{&executed}});
  } else {
    step_frames(batch, 0, machine, DynamicCore{});
  }
  draw_frames(batch, 0, entries.data(), follower);
  return py::make_tuple(py::array_t<uint32_t>(machine.buffer.count, entries.data()), executed);
}

}  // namespace

PYBIND11_MODULE(CULE_MODULE, m) {
  m.def("step", &step, py::arg("address"), py::arg("translated"));
}
