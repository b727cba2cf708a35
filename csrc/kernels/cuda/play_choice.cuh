// In which way a translated game is played: in few warps of many lanes, or in more of fewer lanes.
//
// All give the same results. Which is fastest depends on the game, on how many envs there are, and
// on how far their games have spread out: lanes of a warp wait for those that are elsewhere in the
// program, and warps for each other. So some steps try all ways in turn and time them.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

namespace cule {

class PlayChoice {
 public:
  PlayChoice() {
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

  // A step begins on `stream`. In which way it is played; `played` is called after that has been
  // launched. A step that is captured by a graph goes by what was found before.
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
  void played(cudaStream_t stream) {
    if (tries_) cudaEventRecord(timings_[tried_++].end, stream);
  }

  // The steps at which they are tried: the first, four times as many each time, and at last every
  // kLongest.
  static constexpr int kFirst = 64, kLongest = 4096;
  // So many ways, of which the first is taken until they are tried, three times each in turn.
  static constexpr int kWays = 2, kTries = 3 * kWays;
  // Another than the first has to be faster by so much, so that chance does not decide.
  static constexpr float kMargin = 0.97f;

 private:
  struct Timing {
    cudaEvent_t begin, end;
  };

  // Takes the way whose fastest step was fastest, once all have ended.
  void decide() {
    if (cudaEventQuery(timings_[kTries - 1].end) != cudaSuccess) {
      cudaGetLastError();  // that they have not is no error
      return;
    }
    float fastest[kWays];
    std::fill_n(fastest, kWays, 1e30f);
    for (int i = 0; i < kTries; ++i) {
      float milliseconds = 1e30f;
      cudaEventElapsedTime(&milliseconds, timings_[i].begin, timings_[i].end);
      fastest[i % kWays] = std::min(fastest[i % kWays], milliseconds);
    }
    fastest[0] *= kMargin;
    fastest_ = static_cast<int>(std::min_element(fastest, fastest + kWays) - fastest);
    tried_ = 0;
    next_ = steps_ + std::min(3 * steps_, static_cast<int64_t>(kLongest));
  }

  Timing timings_[kTries];
  int tried_ = 0;
  bool tries_ = false;  // this step is one that is timed
  int fastest_ = 0;
  int64_t steps_ = 0, next_ = kFirst;
};

}  // namespace cule
