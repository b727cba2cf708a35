// In how many blocks, warps and lanes `play` is launched.
#pragma once

#include <algorithm>
#include <iterator>

#include "kernels/cuda/play.cuh"
#include "kernels/cuda/play_choice.cuh"

namespace cule {

// How the CPU part is launched: `lanes` threads of each of a block's first `warps` get an env, and
// the warps wait for each other or not.
struct PlayLaunch {
  int lanes, warps, threads, blocks;
  bool in_step;
};

// By which kernel, and in how many warps; the ways of PlayChoice.
struct PlayWay {
  bool translated;
  int warps;  // of a multiprocessor, as long as that is enough for all envs
};
constexpr PlayWay kPlayWays[] = {{true, 2}, {true, kPlayFewWarps}};
constexpr PlayWay kInterpreted{false, kPlayFewWarps};
static_assert(std::size(kPlayWays) == PlayChoice::kWays);

inline int blocks_for(int count, int each) { return (count + each - 1) / each; }

// The launch for `num_envs` on so many multiprocessors, or on more if these have not threads
// enough. Few warps a multiprocessor share the fetching of code, of which a translated game has
// more; in more of fewer lanes, lanes wait less for others (benchmarks/NOTES.md).
inline PlayLaunch play_launch(int num_envs, int processors, PlayWay way) {
  // With fewer envs a warp, translated warps lose more by waiting for each other than by fetching
  // the same code at different times. The kernel has been compiled for one or the other.
  constexpr int kFewLanes = 3;
  const PlayWay first = way.translated ? kPlayWays[0] : way;
  const int most_lanes = blocks_for(num_envs, first.warps * processors);
  const bool in_step = way.translated && most_lanes > kFewLanes;
  const int warps = in_step ? way.warps : first.warps;
  const int lanes = std::min(kWarp, blocks_for(num_envs, warps * processors));
  if (most_lanes <= kWarp) {
    return {lanes, warps, warps * kWarp, blocks_for(num_envs, warps * lanes), in_step};
  }
  // One block for each multiprocessor, or several rounds of such blocks, with as few warps as all
  // envs need.
  const int rounds = blocks_for(num_envs, processors * kPlayMaxThreads);
  const int least = blocks_for(num_envs, processors * kWarp * rounds);
  const int used = std::min(kPlayMaxWarps, least * way.warps / first.warps);
  const int each = std::min(kWarp, blocks_for(num_envs, processors * used * rounds));
  return {each, used, used * kWarp, blocks_for(num_envs, used * each), true};
}

// The launch on some multiprocessors, which leaves no room on them for anything else.
inline PlayLaunch play_launch_apart(int num_envs, int processors, PlayWay way) {
  PlayLaunch launch = play_launch(num_envs, processors, way);
  launch.threads = kPlayMaxThreads;
  return launch;
}

}  // namespace cule
