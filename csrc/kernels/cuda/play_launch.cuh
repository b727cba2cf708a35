// The launch shape of `play`: how many blocks, warps and lanes.
#pragma once

#include <algorithm>
#include <iterator>

#include "kernels/cuda/order.cuh"
#include "kernels/cuda/play_choice.cuh"

namespace cule {

// A launch of the CPU part. In each of a block's first `warps`, `lanes` threads get an env; or
// `lanes` is kInOrder, and `order_envs` is launched before it.
struct PlayLaunch {
  int lanes, warps, threads, blocks;
  bool in_step;  // the warps of a block wait for each other
};

// The ways that PlayChoice chooses from: which kernel, in how many warps.
struct PlayWay {
  bool translated;
  int warps;     // on a multiprocessor; more if these are not enough for all envs
  bool ordered;  // envs that are alike are together
};
constexpr PlayWay kPlayWays[] = {{true, 2, false}, {true, kPlayFewWarps, true}};
constexpr int kOrderedWay = 1;
constexpr PlayWay kInterpreted{false, kPlayFewWarps, false};
static_assert(std::size(kPlayWays) == PlayChoice::kWays);

inline int blocks_for(int count, int each) { return (count + each - 1) / each; }

// In how many rounds `processors` multiprocessors play `num_envs`.
inline int rounds_for(int num_envs, int processors) {
  return blocks_for(num_envs, processors * kPlayMaxThreads);
}

// The launch for `num_envs` on `processors` multiprocessors, with as many envs in each warp. If
// these do not have enough threads, there are more blocks than that. With few warps, more lanes
// share the code that a warp fetches, and a translated game has much code. With more warps of fewer
// lanes, lanes wait less for others (benchmarks/NOTES.md), and envs that are alike wait little.
inline PlayLaunch even_launch(int num_envs, int processors, PlayWay way) {
  // With this many envs a warp or fewer, translated warps do not wait for each other: that would
  // cost more than fetching the same code at different times. The kernel is compiled for one or the
  // other.
  constexpr int kFewLanes = 3;
  const PlayWay first = way.translated ? kPlayWays[0] : way;
  const int most_lanes = blocks_for(num_envs, first.warps * processors);
  const bool in_step = way.translated && most_lanes > kFewLanes;
  const int warps = in_step ? way.warps : first.warps;
  const int lanes = std::min(kWarp, blocks_for(num_envs, warps * processors));
  if (most_lanes <= kWarp) {
    return {lanes, warps, warps * kWarp, blocks_for(num_envs, warps * lanes), in_step};
  }
  // One block for each multiprocessor, or several rounds of such blocks. Blocks have no more warps
  // than are needed for all envs.
  const int rounds = rounds_for(num_envs, processors);
  const int least = blocks_for(num_envs, processors * kWarp * rounds);
  const int used = std::min(kPlayMaxWarps, least * way.warps / first.warps);
  const int each = std::min(kWarp, blocks_for(num_envs, processors * used * rounds));
  return {each, used, used * kWarp, blocks_for(num_envs, used * each), true};
}

// The launch for `num_envs` on `processors` multiprocessors: with envs in order if the way says so,
// warps are in step, and there are not more blocks than can be ordered.
inline PlayLaunch play_launch(int num_envs, int processors, PlayWay way) {
  PlayLaunch launch = even_launch(num_envs, processors, way);
  const int blocks = std::min(processors * rounds_for(num_envs, processors), num_envs);
  if (way.ordered && launch.in_step && blocks <= kOrderThreads) {
    launch.lanes = kInOrder;
    launch.blocks = blocks;
  }
  return launch;
}

// The launch on `processors` reserved multiprocessors. Its blocks have as many threads as one can
// hold, so no other kernel can run there.
inline PlayLaunch play_launch_reserved(int num_envs, int processors, PlayWay way) {
  PlayLaunch launch = play_launch(num_envs, processors, way);
  launch.threads = kPlayMaxThreads;
  return launch;
}

}  // namespace cule
