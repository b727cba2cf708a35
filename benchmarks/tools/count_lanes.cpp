// What the lanes of a warp execute together, for count_lanes.py: notes the instructions of each
// env, and combines them under a rule.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "execution/interpreter.h"
#include "kernels/memory.h"
#include "kernels/play.h"
#include "kernels/tia_state.h"

namespace {

using namespace cule;

struct Executed {
  uint32_t offset;  // of the ROM
  int32_t cycle;
  bool goes_anywhere;  // what follows is known only when it runs
};
using Frame = std::vector<Executed>;

// Interprets, and notes what it executes.
struct TracingCore : AnyGame {
  std::vector<Frame>* frames;
  template <class M>
  void run(M& m) const {
    frames->emplace_back();
    Predecoded op = m.look_ahead();
    run_in_step(m, FreePace{}, kLongestInstruction, [&](uint32_t, int32_t end) {
      for (; m.runs() && m.cycle < end; --m.instructions_left) {
        const uint32_t opcode = opcode_of(op);  // RTS, RTI, JMP (), BRK
        const bool anywhere = opcode == 0x60 || opcode == 0x40 || opcode == 0x6C || opcode == 0x00;
        frames->back().push_back({m.code_offset(m.r.pc), m.cycle, anywhere});
        op = DynamicCore{}(m, op);
      }
    });
  }
};

std::vector<std::vector<Frame>> traces;  // of each env

// Plays a step of an env of the batch at `address`, without drawing.
void trace(uintptr_t address, size_t env) {
  Batch batch;
  std::memcpy(&batch, reinterpret_cast<const void*>(address), sizeof batch);
  std::vector<uint32_t> entries(batch.buffer_capacity), starts(segment_words(batch.options));
  Devices devices;
  TiaTrail trail{};
  TiaState tia;
  trail.starts = starts_of_one_env(starts.data());
  PlainMachine machine = make_plain_machine(batch, env, devices, {entries.data(), trail, tia});
  traces.emplace_back();
  play_frames(batch, env, machine, TracingCore{{}, &traces.back()});
}

// Where the lanes of a warp are in a frame.
struct Warp {
  struct Lane {
    const Frame* frame;
    size_t at = 0;
    bool goes_on(int32_t end) const { return at < frame->size() && (*frame)[at].cycle < end; }
    const Executed& next() const { return (*frame)[at]; }
  };
  std::vector<Lane> lanes;
  int32_t last = 0;      // the cycle of the last instruction of all lanes
  int64_t executed = 0;  // instructions, one for all lanes that are at it
  int64_t groups = 0;    // how often other lanes went on

  void add(const Frame& frame) {
    lanes.push_back({&frame});
    last = std::max(last, frame.empty() ? 0 : frame.back().cycle);
  }

  std::map<uint32_t, std::vector<Lane*>> by_offset(int32_t end, const std::vector<Lane*>& among) {
    std::map<uint32_t, std::vector<Lane*>> found;
    for (Lane* lane : among) {
      if (lane->goes_on(end)) found[lane->next().offset].push_back(lane);
    }
    return found;
  }
  std::vector<Lane*> all() {
    std::vector<Lane*> found;
    for (Lane& lane : lanes) found.push_back(&lane);
    return found;
  }

  // Those with the lowest address go on, and all others wait.
  void go_hindmost_first(int32_t end) {
    std::vector<Lane*> before, group;
    for (;; before.swap(group)) {
      group.clear();
      for (Lane& lane : lanes) {
        if (!lane.goes_on(end)) continue;
        if (!group.empty() && lane.next().offset < group[0]->next().offset) group.clear();
        if (group.empty() || lane.next().offset == group[0]->next().offset) group.push_back(&lane);
      }
      if (group.empty()) return;
      for (Lane* lane : group) ++lane->at;
      ++executed;
      groups += group != before;
    }
  }
  // Lanes that diverge stay apart, until `end` or until what follows has to be looked up.
  void go_apart(int32_t end) {
    for (auto at = by_offset(end, all()); !at.empty(); at = by_offset(end, all())) {
      for (auto& group : at) go_apart(end, group.second);
    }
  }
  void go_apart(int32_t end, std::vector<Lane*> group) {
    for (++groups;;) {
      ++executed;
      std::vector<Lane*> left;
      for (Lane* lane : group) {
        if (!lane->next().goes_anywhere) left.push_back(lane);
        ++lane->at;
      }
      const auto at = by_offset(end, left);
      if (at.size() != 1) {
        for (const auto& parted : at) go_apart(end, parted.second);
        return;
      }
      group = at.begin()->second;
    }
  }
};

// Instructions that a warp of so many lanes executes in a frame, how often other lanes went on, and
// instructions of an env, all as means. `lines`: scanlines after which all lanes meet.
pybind11::tuple count(size_t lanes, int lines, bool hindmost_first) {
  double executed = 0, groups = 0, own = 0, frames = 0;
  for (size_t first = 0; first + lanes <= traces.size(); first += lanes) {
    size_t common = traces[first].size();
    for (size_t i = 0; i < lanes; ++i) common = std::min(common, traces[first + i].size());
    for (size_t number = 0; number < common; ++number) {
      Warp warp;
      for (size_t i = 0; i < lanes; ++i) {
        const Frame& frame = traces[first + i][number];
        warp.add(frame);
        own += static_cast<double>(frame.size()) / static_cast<double>(lanes);
      }
      const int32_t turn = lines * kCyclesPerLine;
      for (int32_t end = turn; end - turn <= warp.last; end += turn) {
        hindmost_first ? warp.go_hindmost_first(end) : warp.go_apart(end);
      }
      executed += static_cast<double>(warp.executed);
      groups += static_cast<double>(warp.groups);
      ++frames;
    }
  }
  return pybind11::make_tuple(executed / frames, groups / frames, own / frames);
}

// Instructions of a frame of a block in which these envs are divided among `warps` warps, which
// wait for each other after `lines` scanlines: the sum of those of its warps, and how many they
// take with the waiting, as means over the frames of a step.
std::array<double, 2> count_block(const std::vector<size_t>& envs, size_t warps, int lines) {
  const size_t lanes = (envs.size() + warps - 1) / warps;
  const int32_t turn = lines * kCyclesPerLine;
  std::array<double, 2> found{};
  size_t frames = 0;
  for (const size_t env : envs) frames = std::max(frames, traces[env].size());
  for (size_t number = 0; number < frames; ++number) {
    std::vector<Warp> all(warps);
    int32_t last = 0;
    for (size_t i = 0; i < envs.size(); ++i) {
      const std::vector<Frame>& own = traces[envs[i]];
      if (number < own.size()) all[i / lanes].add(own[number]);
    }
    for (const Warp& warp : all) last = std::max(last, warp.last);
    for (int32_t end = turn; end - turn <= last; end += turn) {
      int64_t longest = 0;
      for (Warp& warp : all) {
        const int64_t before = warp.executed;
        warp.go_hindmost_first(end);
        longest = std::max(longest, warp.executed - before);
      }
      found[1] += static_cast<double>(longest);
    }
    for (const Warp& warp : all) found[0] += static_cast<double>(warp.executed);
  }
  for (double& count : found) count /= static_cast<double>(frames);
  return found;
}

// An env's key after the step (PlayOrder).
uint32_t key(size_t env) {
  constexpr int32_t kQuarter = kQuarterLines * kCyclesPerLine;
  std::array<int32_t, 4> quarters{};
  for (const Executed& one : traces[env].back()) {
    ++quarters[static_cast<size_t>(std::clamp(one.cycle / kQuarter, 0, 3))];
  }
  return order_key(quarters[2], quarters[3]);
}

}  // namespace

PYBIND11_MODULE(count_lanes, m) {
  m.def("trace", &trace);
  m.def("count", &count);
  m.def("count_block", &count_block);
  m.def("key", &key);
  m.def("clear", [] { traces.clear(); });
}
