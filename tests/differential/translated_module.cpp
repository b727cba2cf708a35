// One game's translated code on the CPU, beside the interpreter, for tests. RUN_BLOCK_CASES is the
// file of its blocks, GAME its index, LONGEST_BLOCK how many cycles one of them takes at most,
// DECIMAL whether they run in decimal mode, IN_RAM whether the game runs much code in RAM.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>
#include <string>
#include <vector>

#include "execution/block.h"
#include "kernels/cpu/draw_frames.h"
#include "kernels/memory.h"
#include "kernels/play.h"

namespace py = pybind11;

namespace {

using namespace cule;

// Counts of blocks.
struct Counts {
  int64_t instructions, blocks;
  int64_t looked_up;  // blocks after which the next one had to be looked up
  bool known_wrong;   // a known next block was not the right one
};

struct RunBlock {
  Counts* counts;
  template <class M, class Group>
  uint32_t operator()(M& m, uint32_t number, const TurnEnds& ends, const Group& group) const {
    const int32_t before = m.instructions_left;
    const uint32_t next = run(m, number, ends, group);
    counts->instructions += before - m.instructions_left;
    ++counts->blocks;
    counts->looked_up += (next & kLookUp) != 0;
    if (!(next & (kLookUp | kInterpret))) {
      const Predecoded there = m.look_ahead();
      const Predecoded known = mark_of_block(next & kBlockNumbers, m.r.pc, next & kQuietBlock);
      counts->known_wrong |= there.more != known.more || there.control != known.control;
    }
    return next;
  }

 private:
  template <class M, class Group>
  static uint32_t run(M& m, uint32_t number, const TurnEnds& ends, const Group& group) {
    switch (number) {
#include RUN_BLOCK_CASES
      default: __builtin_unreachable();
    }
  }
};

// Steps env 0 of the batch at `address` and draws its picture. Returns the instruction buffer, the
// number of instructions executed in blocks, the number of blocks, after how many of them the next
// one was looked up, and whether a known next block was wrong.
py::tuple step(uintptr_t address, bool translated) {
  Batch batch;
  std::memcpy(&batch, reinterpret_cast<const void*>(address), sizeof batch);
  std::vector<uint32_t> entries(batch.buffer_capacity), starts(segment_words(batch.options));
  Counts counts{};
  Devices devices;
  TiaTrail trail{};
  TiaState tia;
  SoundState unheard;
  trail.starts = starts_of_one_env(starts.data());
  clear_starts(batch, trail.starts);
  PlainMachine machine = make_plain_machine(batch, 0, devices, {entries.data(), trail, tia, unheard});
  if (translated) {
    machine.rom.marked_ops = batch.marked_ops;
    play_frames(batch, 0, machine,
                TranslatedCore<RunBlock, GAME, LONGEST_BLOCK, DECIMAL, IN_RAM>{{&counts}});
  } else {
    play_frames(batch, 0, machine, DynamicCore{});
  }
  store_end_state(batch, 0, machine);
  store_step_end(batch, 0, trail.starts);
  draw_frames<Pixels16>(batch, 0, {entries.data(), trail.starts});
  return py::make_tuple(py::array_t<uint32_t>(machine.buffer.count, entries.data()),
                        counts.instructions, counts.blocks, counts.looked_up, counts.known_wrong);
}

}  // namespace

PYBIND11_MODULE(CULE_MODULE, m) {
  m.def("step", &step, py::arg("address"), py::arg("translated"));
}
