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

// The same launch with envs in order, in up to `blocks` blocks, if so many can be ordered.
inline PlayLaunch in_order(PlayLaunch launch, int num_envs, int blocks) {
  if (blocks > kOrderThreads) return launch;
  launch.lanes = kInOrder;
  launch.blocks = std::min(blocks, num_envs);
  return launch;
}

// The launch for `num_envs` on `processors` multiprocessors. If these do not have enough threads,
// there are more blocks than that. With few warps, more lanes share the code that a warp fetches,
// and a translated game has much code. With more warps of fewer lanes, lanes wait less for other
// lanes (benchmarks/NOTES.md), and envs that are alike wait little.
inline PlayLaunch play_launch(int num_envs, int processors, PlayWay way) {
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
    const int blocks = blocks_for(num_envs, warps * lanes);
    const PlayLaunch even{lanes, warps, warps * kWarp, blocks, in_step};
    return way.ordered && in_step ? in_order(even, num_envs, processors) : even;
  }
  // One block for each multiprocessor, or several rounds of such blocks. Blocks have no more warps
  // than are needed for all envs.
  const int rounds = blocks_for(num_envs, processors * kPlayMaxThreads);
  const int least = blocks_for(num_envs, processors * kWarp * rounds);
  const int used = std::min(kPlayMaxWarps, least * way.warps / first.warps);
  const int each = std::min(kWarp, blocks_for(num_envs, processors * used * rounds));
  const PlayLaunch even{each, used, used * kWarp, blocks_for(num_envs, used * each), true};
  return way.ordered ? in_order(even, num_envs, processors * rounds) : even;
}

// The launch on `processors` reserved multiprocessors. Its blocks have as many threads as one can
// hold, so no other kernel can run there.
inline PlayLaunch play_launch_reserved(int num_envs, int processors, PlayWay way) {
  PlayLaunch launch = play_launch(num_envs, processors, way);
  launch.threads = kPlayMaxThreads;
  return launch;
}

}  // namespace cule
