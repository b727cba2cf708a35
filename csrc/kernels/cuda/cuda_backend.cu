// The CUDA backend: a step is a handful of kernels on the caller's stream, with no allocation and
// no synchronisation. Each phase (kernels/phases.h) is one, for all envs:
//
//   play           one env a thread, few or many threads of a warp by the number of envs; or the
//                  same, compiled for one ROM
//   prepare        one env a thread, a block for what is saved
//   draw           `segments`: kSegmentLines scanlines of one env a thread
//   observe        `observe_envs`: a block for each env
//   restart        a pool state copied by a block, or an episode emulated by a thread
//
// For the few envs whose observation is made of more than the two pictures, the kernel `pool` does
// the phases from prepare to observe, beside the others.
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/kernels.cuh"
#include "kernels/cuda/modules.cuh"
#include "kernels/cuda/play_launch.cuh"
#include "kernels/phases.h"

namespace cule {
namespace {

// kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...), in words of C++, as which
// tests/kernels compiles this file. What goes wrong is left to cudaGetLastError, as it is there.
template <class... Parameters, class... Arguments>
void start(void (*kernel)(Parameters...), dim3 blocks, int threads, unsigned shared_bytes,
           cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <int kValue>
using Number = std::integral_constant<int, kValue>;

// The kernel that `sized` gives for an observation's channels, and for how many bytes of its row a
// lane has at a time: as many as a row of the picture's width takes.
template <class Sized>
auto pick(const Batch& batch, const Sized& sized) {
  const int width = batch.observation.width;
  if (batch.observation.channels == 1) {
    return width <= 3 * kWarp ? sized(Number<1>{}, Number<3>{}) : sized(Number<1>{}, Number<5>{});
  }
  return 3 * width <= 8 * kWarp ? sized(Number<3>{}, Number<8>{})
                                : sized(Number<3>{}, Number<15>{});
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, int multiprocessors) : device_(device), apart_(multiprocessors) {
    Guard guard(device_);
    check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_),
          "cudaDeviceGetAttribute");
    beside_.create();
  }
  ~CudaBackend() override { give_up(); }

  bool plays_in_step(int num_envs) const override {
    return launch_for(num_envs, kPlayWays[0]).in_step;
  }

  void load_translation(const std::string& cubin, const Predecoded* marked_ops) override {
    Guard guard(device_);
    const CaptureRelaxed relaxed;
    check(cudaFree(nullptr), "starting CUDA");
    const CUmodule module = load_linked(cubin);
    CUfunction function = nullptr;
    const CUresult result = driver().get_function(&function, module, "play_translated");
    if (result != CUDA_SUCCESS) driver().unload_module(module);
    check_driver(result, "looking into a translated ROM");
    modules_.push_back(module);
    translated_ = {function, marked_ops};
    choice_ = std::make_unique<PlayChoice>();
  }

  void step(const Batch& batch, void* stream) override {
    Guard guard(device_);
    Phases phases{*this, batch, static_cast<cudaStream_t>(stream)};
    run_step(batch, phases);
    phases.join_pooled();
    check(cudaGetLastError(), "step");
  }

  void reset(const Batch& batch, const uint8_t* mask, const int64_t* seeds,
             void* stream) override {
    Guard guard(device_);
    run_reset(Phases{*this, batch, static_cast<cudaStream_t>(stream), mask, seeds});
    check(cudaGetLastError(), "reset");
  }

 private:
  // The device of this backend is current while a guard lives.
  struct Guard {
    explicit Guard(int device) {
      check(cudaGetDevice(&before), "cudaGetDevice");
      if (before != device) check(cudaSetDevice(device), "cudaSetDevice");
    }
    ~Guard() { cudaSetDevice(before); }
    int before = 0;
  };

  // While it lives, this thread may load code although another one captures a graph; that is not
  // part of it.
  struct CaptureRelaxed {
    CaptureRelaxed() {
      check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    }
    ~CaptureRelaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  };

  // Gives up translated ROMs and the stream beside. Where CUDA fails, as it does when the process
  // ends, there is nobody to tell, and nothing left to give up.
  void give_up() noexcept {
    int before = 0;
    if (cudaGetDevice(&before) != cudaSuccess) return;
    if (cudaSetDevice(device_) == cudaSuccess) {
      beside_.destroy();
      for (const CUmodule module : modules_) driver().unload_module(module);
    }
    cudaSetDevice(before);
  }

  PlayLaunch launch_for(int num_envs, PlayWay way) const {
    return apart_ ? play_launch_apart(num_envs, apart_, way)
                  : play_launch(num_envs, processors_, way);
  }

  void play_frames(const Batch& batch, cudaStream_t stream) const {
    if (!choice_) return play_by(kInterpreted, batch, stream);
    int way;
    {
      const CaptureRelaxed relaxed;  // other threads' captures are not asked after
      way = choice_->begin(stream);
    }
    play_by(kPlayWays[way], batch, stream);
    choice_->played(stream);
  }

  void play_by(PlayWay way, const Batch& batch, cudaStream_t stream) const {
    PlayLaunch launch = launch_for(batch.num_envs, way);
    const unsigned shared_bytes =
        launch.in_step ? static_cast<unsigned>(play_shared_bytes(launch.warps * kWarp)) : 0;
    if (!way.translated) {
      const auto kernel = launch.in_step ? play<true> : play<false>;
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
            "play");
      start(kernel, launch.blocks, launch.threads, shared_bytes, stream, batch, launch.lanes,
            launch.warps);
      return;
    }
    constexpr const char* kKernel = "play_translated";
    constexpr auto kShared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    const CUfunction kernel = translated_.kernel;
    Batch marked = batch;
    marked.marked_ops = translated_.marked_ops;
    void* arguments[] = {&marked, &launch.lanes, &launch.warps};
    check_driver(driver().set_attribute(kernel, kShared, static_cast<int>(shared_bytes)), kKernel);
    check_driver(driver().launch(kernel, launch.blocks, 1, 1, launch.threads, 1, 1, shared_bytes,
                                 stream, arguments, nullptr),
                 kKernel);
  }

  // Nobody has a spare instruction buffer any more.
  static void take_back_spares(const Batch& batch, cudaStream_t stream) {
    check(cudaMemsetAsync(batch.spares.taken, 0, sizeof(*batch.spares.taken), stream),
          "cudaMemsetAsync");
  }

  // A stream beside the caller's, for what takes long but keeps few multiprocessors busy: it is
  // served first.
  class Beside {
   public:
    void create() {
      int least, greatest;
      check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
            "cudaDeviceGetStreamPriorityRange");
      check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
            "cudaStreamCreateWithPriority");
      for (cudaEvent_t* event : {&forked_, &done_}) {
        check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
      }
    }
    void destroy() noexcept {
      for (const cudaEvent_t event : {forked_, done_}) cudaEventDestroy(event);
      cudaStreamDestroy(stream_);
    }
    // Runs `launch(stream)`, which does not wait for what `stream` is given from here on until it
    // joins.
    template <class Launch>
    void fork(cudaStream_t stream, const Launch& launch) const {
      check(cudaEventRecord(forked_, stream), "cudaEventRecord");
      check(cudaStreamWaitEvent(stream_, forked_, 0), "cudaStreamWaitEvent");
      launch(stream_);
      check(cudaEventRecord(done_, stream_), "cudaEventRecord");
    }
    void join(cudaStream_t stream) const {
      check(cudaStreamWaitEvent(stream, done_, 0), "cudaStreamWaitEvent");
    }

   private:
    cudaStream_t stream_ = nullptr;
    cudaEvent_t forked_ = nullptr, done_ = nullptr;
  };

  // The phases of kernels/phases.h for all envs, as launches on a stream. `mask` and `seeds` are
  // those of Backend::reset.
  struct Phases {
    const CudaBackend& backend;
    const Batch& batch;
    cudaStream_t stream;
    const uint8_t* mask = nullptr;
    const int64_t* seeds = nullptr;
    bool pooling = false;  // the kernel `pool` runs beside the stream

    void play() {
      take_back_spares(batch, stream);
      backend.play_frames(batch, stream);
      pooling = batch.options.frameskip >= 2 && batch.options.maxpool;
      if (!pooling) return;
      backend.beside_.fork(stream, [&](cudaStream_t other) {
        const auto sized = [](auto channels, auto most) { return pool<channels, most>; };
        const int blocks = blocks_for(batch.num_envs, kEnvsPerPooled);
        start(pick(batch, sized), blocks, kThreads, 0, other, batch);
      });
    }
    void prepare() const {
      start(cule::prepare, blocks_for(batch.num_envs, kThreads), kThreads, 0, stream, batch);
    }
    void draw() const {
      // The slots are two dimensions, as one has 65,535 blocks at most, which are fewer than a long
      // step's slots.
      const dim3 blocks(blocks_for(batch.num_envs, kThreads), kSegments, batch.options.frameskip);
      start(segments, blocks, kThreads, 0, stream, batch);
    }
    void observe() const { observe_all(false); }
    void keep_final() {
      join_pooled();
      const size_t bytes = observed_frame_bytes(batch.observation) * batch.observation.stack;
      start(cule::keep_final, dim3(batch.num_envs, 4), kThreads, 0, stream, batch, bytes);
    }
    void choose() const {
      start(choose_resets, blocks_for(batch.num_envs, kThreads), kThreads, 0, stream, batch, mask);
    }
    void restart() {
      if (batch.pool.size)
        return start(restart_from_pool, batch.num_envs, kThreads, 0, stream, batch, seeds);
      // An emulated episode may write over a spare instruction buffer, which `pool` reads. For all
      // others the step has been drawn.
      join_pooled();
      take_back_spares(batch, stream);
      const int blocks = blocks_for(batch.num_envs, kWarp);
      start(restart_by_emulation, blocks, kWarp, 0, stream, batch, seeds);
    }
    void observe_start() const { observe_all(true); }

    void observe_all(bool only_starts) const {
      const auto sized = [](auto channels, auto most) { return observe_envs<channels, most>; };
      start(pick(batch, sized), batch.num_envs, kThreads, 0, stream, batch, only_starts);
    }
    // What comes after it on the stream waits for `pool`.
    void join_pooled() {
      if (pooling) backend.beside_.join(stream);
      pooling = false;
    }
  };

  int device_, processors_ = 0;
  Beside beside_;
  int apart_;  // multiprocessors that play has for itself, or 0: it shares all of them
  std::vector<CUmodule> modules_;  // all that were loaded, as graphs may launch their kernels
  struct {
    CUfunction kernel;
    const Predecoded* marked_ops;
  } translated_ = {};
  std::unique_ptr<PlayChoice> choice_;  // where there is a translated ROM
};

}  // namespace

bool has_cuda() { return true; }

Backend* make_cuda_backend(int device, int multiprocessors) {
  return new CudaBackend(device, multiprocessors);
}

}  // namespace cule
