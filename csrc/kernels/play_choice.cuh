// Which kernel plays a translated game: its own, or the interpreter.
//
// Both give the same results. Which one is faster depends on the game, on how many envs there are, and
// on how far their games have spread out: where lanes of a warp are at different places of the
// program, a GPU fetches much of the game's own code. So some steps try both in turn and time them.
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

  // A step begins on `stream`. Whether the game's own kernel plays it; `played` is called after that
  // has been launched. A step that is captured by a graph goes by what was found before.
  bool begin(cudaStream_t stream) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
    cudaStreamIsCapturing(stream, &capture);
    tries_ = false;
    if (capture != cudaStreamCaptureStatusNone) return own_is_faster_;
    ++steps_;
    if (tried_ == kTries) decide();
    tries_ = tried_ < kTries && steps_ >= next_;
    if (!tries_) return own_is_faster_;
    cudaEventRecord(timings_[tried_].begin, stream);
    return tries_own(tried_);
  }
  void played(cudaStream_t stream) {
    if (tries_) cudaEventRecord(timings_[tried_++].end, stream);
  }

  // The steps at which they are tried: the first, four times as many each time, and at last every
  // kLongest.
  static constexpr int kFirst = 64, kLongest = 4096;
  // So many steps in turn, the game's own first.
  static constexpr int kTries = 6;
  // The interpreter has to be faster by so much, so that chance does not decide.
  static constexpr float kMargin = 0.97f;

 private:
  struct Timing {
    cudaEvent_t begin, end;
  };
  static constexpr bool tries_own(int which) { return which % 2 == 0; }

  // Takes the kernel whose fastest step was faster, once all have ended.
  void decide() {
    if (cudaEventQuery(timings_[kTries - 1].end) != cudaSuccess) {
      cudaGetLastError();  // that they have not is no error
      return;
    }
    float fastest[2] = {1e30f, 1e30f};
    for (int i = 0; i < kTries; ++i) {
      float milliseconds = 1e30f;
      cudaEventElapsedTime(&milliseconds, timings_[i].begin, timings_[i].end);
      float& own = fastest[tries_own(i)];
      own = std::min(own, milliseconds);
    }
    own_is_faster_ = fastest[0] >= fastest[1] * kMargin;
    tried_ = 0;
    next_ = steps_ + std::min(3 * steps_, static_cast<int64_t>(kLongest));
  }

  Timing timings_[kTries];
  int tried_ = 0;
  bool tries_ = false;  // this step is one that is timed
  bool own_is_faster_ = true;
  int64_t steps_ = 0, next_ = kFirst;
};

}  // namespace cule
