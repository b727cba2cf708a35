// Chooses how a translated game is launched: in few warps of envs at random, or in more warps of
// envs that are alike (order.cuh).
//
// All ways give the same results. Which one is fastest depends on the game, on the number of envs,
// and on how far their games have diverged: lanes wait for lanes that are elsewhere in the program,
// and warps wait for each other. So now and then some steps try each way in turn and are timed.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

namespace cule {

class PlayChoice {
 public:
  // Until the ways have been tried it plays in the way `fastest`.
  explicit PlayChoice(int fastest) : fastest_(fastest) {
    for (Timing& timing : timings_) {
      cudaEventCreate(&timing.begin);
      cudaEventCreate(&timing.end);
    }
  }
  ~PlayChoice() {
    for (Timing& timing : timings_) {
      cudaEventDestroy(timing.begin);
      cudaEventDestroy(timing.end);
    }
  }
  PlayChoice(const PlayChoice&) = delete;
  PlayChoice& operator=(const PlayChoice&) = delete;

  int fastest() const { return fastest_; }

  // Call this when a step begins on `stream`, and `ended` after its last launch: what comes after
  // playing takes longer or shorter, too, with another order of envs. Returns the way to play it. A
  // step that a graph captures is not timed: it gets the way that is the fastest so far.
  int begin(cudaStream_t stream) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
    cudaStreamIsCapturing(stream, &capture);
    tries_ = false;
    if (capture != cudaStreamCaptureStatusNone) return fastest_;
    ++steps_;
    if (tried_ == kTries) decide();
    tries_ = tried_ < kTries && steps_ >= next_;
    if (!tries_) return fastest_;
    cudaEventRecord(timings_[tried_].begin, stream);
    return tried_ % kWays;
  }
  void ended(cudaStream_t stream) {
    if (tries_) cudaEventRecord(timings_[tried_++].end, stream);
    tries_ = false;
  }

  // The ways are tried first at step kFirst, then each time after twice as many steps, but at least
  // every kLongest steps: in the first hundreds games begin to differ.
  static constexpr int kFirst = 64, kLongest = 4096;
  // Each way is tried twelve times, in turns, as steps differ. Before that, the first way is taken.
  static constexpr int kWays = 2, kTries = 12 * kWays;
  // Another way is taken only if its time is below kMargin times the first way's. So small
  // differences, which may be chance, do not count.
  static constexpr float kMargin = 0.98f;

 private:
  struct Timing {
    cudaEvent_t begin, end;
  };

  // Once all timed steps have ended, takes the way with the faster median step. A step that waited
  // for the host took longer in whichever way it was played.
  void decide() {
    if (cudaEventQuery(timings_[kTries - 1].end) != cudaSuccess) {
      cudaGetLastError();  // clears cudaErrorNotReady, which is no error here
      return;
    }
    float medians[kWays];
    for (int way = 0; way < kWays; ++way) medians[way] = median_of(way);
    medians[0] *= kMargin;
    fastest_ = static_cast<int>(std::min_element(medians, medians + kWays) - medians);
    tried_ = 0;
    next_ = steps_ + std::min(steps_, static_cast<int64_t>(kLongest));
  }

  float median_of(int way) const {
    constexpr int kEach = kTries / kWays;
    float took[kEach];
    for (int i = 0; i < kEach; ++i) {
      const Timing& timing = timings_[i * kWays + way];
      took[i] = 1e30f;
      cudaEventElapsedTime(&took[i], timing.begin, timing.end);
    }
    std::nth_element(took, took + kEach / 2, took + kEach);
    return took[kEach / 2];
  }

  Timing timings_[kTries];
  int tried_ = 0;
  bool tries_ = false;  // this step is timed
  int fastest_;
  int64_t steps_ = 0, next_ = kFirst;
};

}  // namespace cule
