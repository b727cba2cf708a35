// The CUDA backend. A step is a few kernels on the caller's stream, without allocation and without
// synchronization. Each phase (kernels/phases.h) is one kernel for all envs:
//
//   play           a thread for each env, by the interpreter, or by a kernel compiled for one ROM;
//                  the number of envs says how many threads of a warp have one; `order_envs`, a
//                  kernel of one block, may say before which envs are played together
//   hear           a warp for each env
//   prepare        a thread for each env; a block saves pictures
//   draw           `segments`: a thread for each kSegmentLines scanlines of an env
//   see            `see_frames`: a lane for each of an env's last two frames, of which a
//                  warp has a few; then a warp for each env lists the objects
//   observe        `observe_envs`: a block for each env
//   restart        a block copies a state of the pool, or a thread emulates an episode's start
//
// The observations of a few envs are made of more than the two pictures. For these the kernel
// `pool` does the phases from prepare to observe, at the same time as the kernels for all others.
#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <optional>
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

// Does what kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...) does, in plain C++:
// tests/kernels compiles this file with a C++ compiler. The caller asks cudaGetLastError for
// errors, as after <<<>>>.
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

// Returns sized(channels, most), a kernel for the batch's observations. A lane has up to `most`
// bytes of a row at a time, so that rows up to a picture's width need one pass.
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
  CudaBackend(int device, int multiprocessors) : device_(device), reserved_(multiprocessors) {
    Guard guard(device_);
    check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_),
          "cudaDeviceGetAttribute");
    side_stream_.create();
    boxes_stream_.create();
  }
  ~CudaBackend() override { release(); }

  bool plays_in_step(int num_envs) const override {
    return launch_for(num_envs, kPlayWays[0]).in_step;
  }

  bool reserve(int num_envs, int multiprocessors, std::optional<bool> ordered) override {
    const bool in_step = plays_in_step(num_envs);
    const int before = reserved_;
    reserved_ = multiprocessors;
    if (plays_in_step(num_envs) != in_step) {
      reserved_ = before;
      return false;
    }
    ordered_ = ordered;
    return true;
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
    choice_ = std::make_unique<PlayChoice>(choice_ ? choice_->fastest() : kOrderedWay);
  }

  void step(const Batch& batch, void* stream) override {
    Guard guard(device_);
    Phases phases{*this, batch, static_cast<cudaStream_t>(stream)};
    run_step(batch, phases);
    phases.join_pooled();
    if (choice_) choice_->ended(phases.stream);
    check(cudaGetLastError(), "step");
  }

  void reset(const Batch& batch, const uint8_t* mask, const int64_t* seeds,
             void* stream) override {
    Guard guard(device_);
    run_reset(batch, Phases{*this, batch, static_cast<cudaStream_t>(stream), mask, seeds});
    check(cudaGetLastError(), "reset");
  }

  void copy(void* to, const void* from, size_t bytes, void* stream) override {
    Guard guard(device_);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                          static_cast<cudaStream_t>(stream)),
          "cudaMemcpyAsync");
  }

  void follow(void* earlier, void* later) override {
    Guard guard(device_);
    side_stream_.order(static_cast<cudaStream_t>(earlier), static_cast<cudaStream_t>(later));
  }

  void mend_states(const Batch& batch, void* stream) override {
    Guard guard(device_);
    start(cule::mend_states, blocks_for(batch.num_envs, kThreads), kThreads, 0,
          static_cast<cudaStream_t>(stream), batch);
    check(cudaGetLastError(), "mend_states");
  }

 private:
  // While a Guard exists, this backend's device is the current one.
  struct Guard {
    explicit Guard(int device) {
      check(cudaGetDevice(&before), "cudaGetDevice");
      if (before != device) check(cudaSetDevice(device), "cudaSetDevice");
    }
    ~Guard() { cudaSetDevice(before); }
    int before = 0;
  };

  // While one exists, this thread may load code even if another thread captures a graph. What is
  // loaded is not part of the graph.
  struct CaptureRelaxed {
    CaptureRelaxed() {
      check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    }
    ~CaptureRelaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  };

  // Releases translated ROMs and the side streams. If the process is ending, CUDA calls fail: then
  // everything is released already, so errors are ignored.
  void release() noexcept {
    int before = 0;
    if (cudaGetDevice(&before) != cudaSuccess) return;
    if (cudaSetDevice(device_) == cudaSuccess) {
      side_stream_.destroy();
      boxes_stream_.destroy();
      for (const CUmodule module : modules_) driver().unload_module(module);
    }
    cudaSetDevice(before);
  }

  PlayLaunch launch_for(int num_envs, PlayWay way) const {
    return reserved_ ? play_launch_reserved(num_envs, reserved_, way)
                     : play_launch(num_envs, processors_, way);
  }

  void play_frames(const Batch& batch, cudaStream_t stream) const {
    if (!choice_) return play_by(kInterpreted, batch, stream);
    if (ordered_) return play_by(kPlayWays[*ordered_ ? kOrderedWay : 0], batch, stream);
    int way;
    {
      const CaptureRelaxed relaxed;  // captures by other threads do not matter here
      way = choice_->begin(stream);
    }
    play_by(kPlayWays[way], batch, stream);
  }

  void play_by(PlayWay way, const Batch& batch, cudaStream_t stream) const {
    PlayLaunch launch = launch_for(batch.num_envs, way);
    if (launch.lanes == kInOrder) {
      start(order_envs, 1, kOrderThreads, 0, stream, batch, launch.blocks, launch.warps * kWarp);
    }
    const unsigned shared_bytes =
        launch.in_step ? static_cast<unsigned>(play_shared_bytes(launch.warps * kWarp)) : 0;
    if (!way.translated) {
      const auto kernel = hears(batch) ? launch.in_step ? play<true, true> : play<false, true>
                          : launch.in_step ? play<true, false> : play<false, false>;
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

  // From here on, no env has a spare instruction buffer.
  static void return_spares(const Batch& batch, cudaStream_t stream) {
    check(cudaMemsetAsync(batch.spares.taken, 0, sizeof(*batch.spares.taken), stream),
          "cudaMemsetAsync");
  }

  // A second stream, for work that takes long but needs few multiprocessors. It runs at the same
  // time as the caller's stream and has a higher priority.
  class SideStream {
   public:
    void create() {
      int least, greatest;
      check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
            "cudaDeviceGetStreamPriorityRange");
      check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
            "cudaStreamCreateWithPriority");
      for (cudaEvent_t* event : {&forked_, &done_, &ordered_}) {
        check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
      }
    }
    void destroy() noexcept {
      for (const cudaEvent_t event : {forked_, done_, ordered_}) cudaEventDestroy(event);
      cudaStreamDestroy(stream_);
    }
    // Runs `launch(side stream)`. Its work begins after all that is on `stream` now. What `stream`
    // gets from here on does not wait for it, until `join`.
    template <class Launch>
    void fork(cudaStream_t stream, const Launch& launch) const {
      check(cudaEventRecord(forked_, stream), "cudaEventRecord");
      check(cudaStreamWaitEvent(stream_, forked_, 0), "cudaStreamWaitEvent");
      launch(stream_);
      check(cudaEventRecord(done_, stream_), "cudaEventRecord");
    }
    // Any two streams: what comes on `later` waits for what is on `earlier`.
    void order(cudaStream_t earlier, cudaStream_t later) const {
      check(cudaEventRecord(ordered_, earlier), "cudaEventRecord");
      check(cudaStreamWaitEvent(later, ordered_, 0), "cudaStreamWaitEvent");
    }
    void join(cudaStream_t stream) const {
      check(cudaStreamWaitEvent(stream, done_, 0), "cudaStreamWaitEvent");
    }

   private:
    cudaStream_t stream_ = nullptr;
    cudaEvent_t forked_ = nullptr, done_ = nullptr, ordered_ = nullptr;
  };

  // The phases of kernels/phases.h for all envs, as launches on a stream. `mask` and `seeds` are
  // those of Backend::reset.
  struct Phases {
    const CudaBackend& backend;
    const Batch& batch;
    cudaStream_t stream;
    const uint8_t* mask = nullptr;
    const int64_t* seeds = nullptr;
    bool pooling = false;  // the kernel `pool` is on the side stream

    void play() {
      return_spares(batch, stream);
      backend.play_frames(batch, stream);
      // Nothing that follows on `stream` writes what boxes are found from.
      if (sees(batch))
        backend.boxes_stream_.fork(stream, [&](cudaStream_t other) { find_boxes_on(other); });
      pooling = pools_frames(batch.options);
      if (!pooling) return;
      backend.side_stream_.fork(stream, [&](cudaStream_t other) {
        const auto sized = [](auto channels, auto most) { return pool<channels, most>; };
        const int blocks = blocks_for(batch.num_envs, pooled_by_a_block(batch));
        start(pick(batch, sized), blocks, kThreads, 0, other, batch);
      });
    }
    void hear() const {
      start(hear_envs, blocks_for(batch.num_envs, kThreads / kWarp), kThreads, 0, stream, batch);
    }
    void prepare() const {
      start(cule::prepare, blocks_for(batch.num_envs, kThreads), kThreads, 0, stream, batch);
    }
    void draw() const {
      // The slots take two dimensions. One has 65,535 blocks at most, and a long step more slots.
      const dim3 blocks(blocks_for(batch.num_envs, kThreads), kSegments, batch.options.frameskip);
      start(segments, blocks, kThreads, 0, stream, batch);
    }
    void see() const { backend.boxes_stream_.join(stream); }
    void list() const { list_objects_of(false); }
    void list_start() const { list_objects_of(true); }
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
      if (batch.pool.size) {
        start(restart_from_pool, batch.num_envs, kThreads, 0, stream, batch, seeds);
        if (!starts_lives(batch.options)) return;
      }
      // An emulated start may overwrite a spare instruction buffer, and `pool` may still read one.
      // All other envs are drawn by now.
      join_pooled();
      return_spares(batch, stream);
      const int blocks = blocks_for(batch.num_envs, kWarp);
      start(restart_by_emulation, blocks, kWarp, 0, stream, batch, seeds);
    }
    void observe_start() const { observe_all(true); }

    void find_boxes_on(cudaStream_t other) const {
      check(cudaMemsetAsync(batch.num_changed_logs, 0, sizeof(*batch.num_changed_logs), other),
            "cudaMemsetAsync");
      const dim3 pieces(blocks_for(batch.num_envs, kThreads), kSegments, kSeenFrames);
      start(find_runs, pieces, kThreads, 0, other, batch);
      const int frames = kSeenFrames * batch.num_envs;
      const int segments = blocks_for(frames * kSegments, kThreads / kWarp);
      const int blocks = std::min(segments, backend.processors_ * kFindBoxesBlocks);
      start(find_boxes, blocks, kThreads, 0, other, batch);
      start(join_boxes, blocks_for(frames, kThreads / kWarp), kThreads, 0, other, batch);
      start(find_boxes_again, blocks_for(frames, kWarp), kWarp, 0, other, batch);
    }
    void list_objects_of(bool only_starts) const {
      const int blocks = blocks_for(batch.num_envs, kThreads / kWarp);
      start(list_all_objects, blocks, kThreads, 0, stream, batch, only_starts);
    }
    void observe_all(bool only_starts) const {
      const auto sized = [](auto channels, auto most) { return observe_envs<channels, most>; };
      start(pick(batch, sized), batch.num_envs, kThreads, 0, stream, batch, only_starts);
      if (start_of(batch.options) == EpisodeStart::kEnvpool)
        start(fill_stacks, batch.num_envs, kThreads, 0, stream, batch);
    }
    // What comes on the stream after this waits for `pool`.
    void join_pooled() {
      if (pooling) backend.side_stream_.join(stream);
      pooling = false;
    }
  };

  int device_, processors_ = 0;
  SideStream side_stream_, boxes_stream_;
  int reserved_;  // multiprocessors that only `play` uses; 0: it shares all of them
  std::optional<bool> ordered_;  // whether envs that are alike are together; else PlayChoice says
  std::vector<CUmodule> modules_;  // every one that was loaded: graphs may launch their kernels
  struct {
    CUfunction kernel;
    const Predecoded* marked_ops;
  } translated_ = {};
  std::unique_ptr<PlayChoice> choice_;  // null until there is a translated ROM
};

}  // namespace

bool has_cuda() { return true; }

Backend* make_cuda_backend(int device, int multiprocessors) {
  return new CudaBackend(device, multiprocessors);
}

}  // namespace cule
