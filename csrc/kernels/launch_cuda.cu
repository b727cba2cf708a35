// The CUDA backend: a step is a handful of kernels on the caller's stream, with no allocation and
// no synchronisation.
//
//   play      CPU part: one env a thread, few or many threads of a warp by the number of envs; or
//             the same, compiled for one ROM
//   keep      the frame that the newest observation shows, where it would be lost; from here on the
//             TIA's state is the new one
//   segments  TIA part: kSegmentLines scanlines of one env a thread
//   pool      both for the few envs whose observation is made of more than the two pictures
//   restart   resets: a pool state copied by a block, or an episode emulated by a thread
//   observe_envs   observations: a block for each env
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/draw.h"
#include "kernels/launch.h"
#include "kernels/observe/observe.h"
#include "kernels/play.cuh"
#include "kernels/play_choice.cuh"
#include "kernels/reset.h"

namespace cule {
namespace {

constexpr int kThreads = 128;
static_assert(kMaxEnvsApart == kPlayMaxThreads);
static_assert(kEnvsPerPooled <= kThreads);  // of a block, which pools one env's frame at a time
// Blocks at once on a multiprocessor, of the kernel that draws: 96 registers a thread, of which six
// blocks would have to keep some in memory.
constexpr int kDrawBlocks = 5;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("CUDA failed in ") + what + ": " +
                             cudaGetErrorString(error));
}

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

template <bool kInStep>
__global__ void __launch_bounds__(kPlayMaxThreads)
    play(const __grid_constant__ Batch batch, int lanes, int warps) {
  play_envs<kInStep>(batch, lanes, warps, DynamicCore{}, nullptr);
}

// The threads of a warp, or of a block of kThreads.
struct WarpLanes {
  static constexpr int kCount = kWarp;
  __device__ __forceinline__ int lane() const { return threadIdx.x % kWarp; }
  __device__ __forceinline__ void sync() const { __syncwarp(); }
  __device__ __forceinline__ uint32_t ballot(bool condition) const {
    return __ballot_sync(~0u, condition);
  }
};
struct BlockLanes {
  static constexpr int kCount = kThreads;
  __device__ __forceinline__ int lane() const { return threadIdx.x; }
  __device__ __forceinline__ void sync() const { __syncthreads(); }
};

// Whether `pool` draws and observes an env, and nobody else.
__device__ __forceinline__ bool is_pooled(const Batch& batch, size_t env) {
  return needs_pooled(batch.traces[env].flags);
}

__device__ __forceinline__ void add_collisions(const Batch& batch, size_t env, uint32_t found) {
  constexpr size_t kWord = (offsetof(EnvRecord, tia) + offsetof(TiaState, collisions)) / 4;
  static_assert((offsetof(TiaState, collisions) & 3) == 0, "the latches are half of their word");
  const RecordLayout& records = batch.records;
  if (found)
    atomicOr(records.words + kWord * records.word_stride + env * records.env_stride, found);
}

__global__ void __launch_bounds__(kThreads, kDrawBlocks)
    segments(const __grid_constant__ Batch batch) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x, env = min(thread, batch.num_envs - 1);
  const uint32_t slot = blockIdx.z * kSegments + blockIdx.y;
  const Recording recording{entries_of(batch, static_cast<size_t>(env)), starts_of_env(batch, env)};
  using Room = LineRoom<LineBits>;
  // The threads' side by side, so that no two meet in a bank.
  __shared__ LineBits words[Room::kSize * kThreads];
  __shared__ Canvases<kWarp> canvases[kThreads / kWarp];
  const Room room{words + threadIdx.x, kThreads};
  const uint32_t found = draw_beside(batch, env, env == thread, recording, slot, room,
                                     canvases[threadIdx.x / kWarp], WarpLanes{});
  add_collisions(batch, static_cast<size_t>(env), found);
}

// A warp's band of the rows of an env's newest observation.
template <int kChannels, int kMax>
__device__ __forceinline__ void resample_band(const Batch& batch, size_t env,
                                              const FrameSource& source,
                                              const SharedPalette<kChannels>& palette,
                                              Window<kChannels>& window) {
  constexpr int kWarps = kThreads / kWarp;
  const ObservationFormat& format = batch.observation;
  const int warp = threadIdx.x / kWarp, rows = (format.height + kWarps - 1) / kWarps;
  const int begin = warp * rows, end = min(begin + rows, format.height);
  const Resample resample = format.resamples[batch.group[env]];
  resample_rows<kChannels, kMax>(format, resample, source, palette, begin, end,
                                  newest_frame(batch, env), window, WarpLanes{});
}

// Copies a state of the pool over each env that starts an episode; a block for each env.
__global__ void __launch_bounds__(kThreads, 8)
    restart_from_pool(const __grid_constant__ Batch batch, const uint8_t* mask,
                      const int64_t* seeds, bool by_trace) {
  const size_t env = blockIdx.x;
  if (by_trace ? !(batch.traces[env].flags & kResetNow) : (mask && !mask[env])) return;
  __shared__ size_t slot;
  if (threadIdx.x == 0) slot = restart_record(batch, env, seeds ? seeds[env] : kNoSeed);
  __syncthreads();
  const uint4* from = reinterpret_cast<const uint4*>(batch.pool.pictures +
                                                     slot * 2 * batch.picture_bytes);
  const Pictures pictures = pictures_of(batch, env);
  uint4* to = reinterpret_cast<uint4*>(pictures.pixels);
  for (uint32_t i = threadIdx.x; i < 2 * batch.picture_bytes / sizeof(uint4); i += kThreads)
    to[i] = from[i];
  own_rows(pictures, BlockLanes{});
}

// Emulates the start of an episode for each env that starts one; a thread for each env.
__global__ void __launch_bounds__(kWarp)
    restart_by_emulation(const __grid_constant__ Batch batch, const uint8_t* mask,
                         const int64_t* seeds, bool by_trace) {
  const size_t env = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (env >= static_cast<size_t>(batch.num_envs)) return;
  if (by_trace ? !(batch.traces[env].flags & kResetNow) : (mask && !mask[env])) return;
  TiaState tia;
  TiaTrail trail;
  trail.starts = starts_of_env(batch, env);
  trail.spares = batch.spares;
  const Workplace place{own_buffer(batch, env), trail, tia};
  restart_exactly(batch, env, seeds ? seeds[env] : kNoSeed, DynamicCore{}, place);
}

// Marks what `observe` has to do after a reset by mask.
__global__ void __launch_bounds__(kThreads)
    mark_reset(const __grid_constant__ Batch batch, const uint8_t* mask) {
  const int env = blockIdx.x * blockDim.x + threadIdx.x;
  if (env < batch.num_envs)
    batch.traces[env].flags = !mask || mask[env] ? kPoolLast | kFresh | kResetNow : 0;
}

__global__ void __launch_bounds__(kThreads)
    keep_final(const __grid_constant__ Batch batch, size_t bytes) {
  const size_t env = blockIdx.x;
  if (!(batch.terminated[env] || batch.truncated[env])) return;
  const uint8_t* from = batch.observations + env * bytes;
  uint8_t* to = batch.final_observations + env * bytes;
  for (size_t i = blockIdx.y * blockDim.x + threadIdx.x; i < bytes; i += gridDim.y * blockDim.x)
    to[i] = from[i];
}

// The envs of a block, `kEach` of them, that there is something to do for: a few in thousands. Each
// thread looks at one, and all of the block do what one of them finds.
template <int kEach>
struct EnvsFound {
  int count;
  int envs[kEach];

  // Calls `body(env)` for each env of which `wanted(env)` holds, by all threads.
  template <class Wanted, class Body>
  __device__ __forceinline__ void for_each(const Batch& batch, const Wanted& wanted,
                                           const Body& body) {
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const int thread = threadIdx.x, env = blockIdx.x * kEach + thread;
    if (thread < kEach && env < batch.num_envs && wanted(env)) envs[atomicAdd(&count, 1)] = env;
    __syncthreads();
    for (int i = 0; i < count; ++i) body(static_cast<size_t>(envs[i]));
  }
};

// Saves the frames of newest observations that this step draws over and goes on showing, and gives
// scanlines their own rows where some are left as they are. What is pooled does that for itself.
__global__ void __launch_bounds__(kThreads) keep(const __grid_constant__ Batch batch) {
  __shared__ EnvsFound<kThreads> found;
  const auto wanted = [&](size_t env) CULE_INLINE_LAMBDA {
    return !is_pooled(batch, env) && must_prepare(batch, env, batch.traces[env]);
  };
  found.for_each(batch, wanted,
                 [&](size_t env) CULE_INLINE_LAMBDA { prepare(batch, env, BlockLanes{}); });
  __syncthreads();
  const size_t env = blockIdx.x * size_t{kThreads} + threadIdx.x;
  if (env < static_cast<size_t>(batch.num_envs) && !is_pooled(batch, env)) {
    settle(batch, env, starts_of_env(batch, env));
  }
}

// All that is left of a step for the envs whose observation is made of more than the two pictures,
// one after the other, as those of a block may have one frame `pooled` among them (Batch::pooled).
// Each takes longer than drawing all others.
template <int kChannels, int kMax>
__global__ void __launch_bounds__(kThreads) pool(const __grid_constant__ Batch batch) {
  constexpr int kWarps = kThreads / kWarp;
  using Room = LineRoom<LineBits>;
  __shared__ EnvsFound<kEnvsPerPooled> found;
  // First a frame is drawn, then it is resized.
  struct Resizing {
    Window<kChannels> windows[kWarps];
    SharedPalette<kChannels> palette;
  };
  __shared__ union {
    LineBits words[Room::kSize * kThreads];
    Resizing resizing;
  } shared;
  const BlockLanes lanes;
  const auto wanted = [&](size_t env) CULE_INLINE_LAMBDA { return is_pooled(batch, env); };
  found.for_each(batch, wanted, [&](size_t env) CULE_INLINE_LAMBDA {
    const StepTrace& trace = batch.traces[env];
    const Recording recording{entries_of(batch, env), starts_of_env(batch, env)};
    prepare(batch, env, lanes);
    lanes.sync();
    if (threadIdx.x == 0) settle(batch, env, recording.starts);
    lanes.sync();
    uint32_t collisions = 0;
    for (size_t slot = threadIdx.x; slot < trace.frames * size_t{kSegments}; slot += kThreads) {
      const Part part = part_of(trace, recording.starts, slot);
      collisions |= draw_rare_part(batch, env, recording, part, slot, 1,
                                   Room{shared.words + threadIdx.x, kThreads});
    }
    add_collisions(batch, env, collisions);
    lanes.sync();
    shared.resizing.palette.load(palette_of(batch, config_of(batch, env)), lanes);
    pool_frame(batch, env, trace.flags, picture_pair(batch, env), lanes);
    shift_stack(batch, env, trace.flags, lanes);
    lanes.sync();
    Resizing& resizing = shared.resizing;
    resample_band<kChannels, kMax>(batch, env, frame_source(batch, env, trace.flags),
                                    resizing.palette, resizing.windows[threadIdx.x / kWarp]);
    if (threadIdx.x == 0) note_observed(batch, env, trace.flags);
    lanes.sync();
  });
}

// Moves an env's stack on by one frame, by a block, and puts the newest one at its end, a band of
// rows by each warp. This pass looks at all envs that stepped, but for those of `pool`, or only at
// those that were reset.
template <int kChannels, int kMax>
__global__ void __launch_bounds__(kThreads, kChannels == 1 ? 7 : 4)
    observe_envs(const __grid_constant__ Batch batch, bool only_fresh) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ Window<kChannels> windows[kWarps];
  __shared__ SharedPalette<kChannels> palette;
  constexpr int kRowWords = Pictures::kRows / 4;
  __shared__ uint32_t row_of[2][kRowWords];
  const size_t env = blockIdx.x;
  const uint32_t flags = batch.traces[env].flags;
  if (needs_pooled(flags) || (only_fresh && !(flags & kFresh))) return;
  if (flags & kPools) {
    const PicturePair pictures = frame_source(batch, env, flags).pictures;
    for_each_item<2 * kRowWords / kThreads>(BlockLanes{}, 2 * kRowWords, [&](int, int i) {
      const uint8_t* rows = i < kRowWords ? pictures.front.row_of : pictures.back.row_of;
      row_of[i / kRowWords][i % kRowWords] = reinterpret_cast<const uint32_t*>(rows)[i % kRowWords];
    });
    palette.load(palette_of(batch, config_of(batch, env)), BlockLanes{});
  }
  shift_stack(batch, env, flags, BlockLanes{});
  if (!(flags & kPools)) return;
  FrameSource source = frame_source(batch, env, flags);
  source.pooled = nullptr;
  source.pictures.front.row_of = reinterpret_cast<const uint8_t*>(row_of[0]);
  source.pictures.back.row_of = reinterpret_cast<const uint8_t*>(row_of[1]);
  __syncthreads();
  resample_band<kChannels, kMax>(batch, env, source, palette, windows[threadIdx.x / kWarp]);
  if (threadIdx.x == 0) note_observed(batch, env, flags);
}

// The driver's functions that load compiled code. They are asked for at run time, so that nothing
// links with the driver.
struct Driver {
  decltype(&cuLinkCreate) begin_link;
  decltype(&cuLinkAddData) add_to_link;
  decltype(&cuLinkComplete) finish_link;
  decltype(&cuLinkDestroy) end_link;
  decltype(&cuModuleLoadData) load_module;
  decltype(&cuModuleUnload) unload_module;
  decltype(&cuModuleGetFunction) get_function;
  decltype(&cuFuncSetAttribute) set_attribute;
  decltype(&cuLaunchKernel) launch;
};

template <class Function>
void find_in_driver(const char* name, Function*& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 13000
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), name);
#else
  check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result), name);
#endif
  if (!found) throw std::runtime_error(std::string("expected the CUDA driver to have ") + name);
  function = reinterpret_cast<Function*>(found);
}

const Driver& driver() {
  static const Driver found = [] {
    Driver d;
    find_in_driver("cuLinkCreate", d.begin_link);
    find_in_driver("cuLinkAddData", d.add_to_link);
    find_in_driver("cuLinkComplete", d.finish_link);
    find_in_driver("cuLinkDestroy", d.end_link);
    find_in_driver("cuModuleLoadData", d.load_module);
    find_in_driver("cuModuleUnload", d.unload_module);
    find_in_driver("cuModuleGetFunction", d.get_function);
    find_in_driver("cuFuncSetAttribute", d.set_attribute);
    find_in_driver("cuLaunchKernel", d.launch);
    return d;
  }();
  return found;
}

// `log` is what the driver has to say about it.
void check_driver(CUresult result, const char* what, const std::string& log = "") {
  if (result == CUDA_SUCCESS) return;
  const std::string sentence = std::string(what) + " failed with CUDA driver error " +
                               std::to_string(result);
  throw std::runtime_error(log.empty() ? sentence : sentence + ": " + log);
}

// A translated ROM's `cubin`, linked and loaded into the current context.
CUmodule load_linked(const std::string& cubin) {
  constexpr const char* kLinking = "linking a translated ROM";
  constexpr size_t kLogBytes = 8192;
  std::string log(kLogBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  CUlinkState link;
  check_driver(driver().begin_link(2, options, values, &link), kLinking);
  CUresult result = driver().add_to_link(link, CU_JIT_INPUT_CUBIN, const_cast<char*>(cubin.data()),
                                         cubin.size(), "translated ROM", 0, nullptr, nullptr);
  void* linked = nullptr;
  CUmodule module = nullptr;
  if (result == CUDA_SUCCESS) result = driver().finish_link(link, &linked, nullptr);
  if (result == CUDA_SUCCESS) result = driver().load_module(&module, linked);
  driver().end_link(link);
  check_driver(result, kLinking, log.c_str());
  return module;
}

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

int blocks_for(int count, int each) { return (count + each - 1) / each; }

// The launch for `num_envs` on so many multiprocessors, or on more if these have not threads
// enough. Few warps a multiprocessor share the fetching of code, of which a translated game has
// more; in more of fewer lanes, lanes wait less for others (benchmarks/NOTES.md).
PlayLaunch play_launch(int num_envs, int processors, PlayWay way) {
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
PlayLaunch play_launch_apart(int num_envs, int processors, PlayWay way) {
  PlayLaunch launch = play_launch(num_envs, processors, way);
  launch.threads = kPlayMaxThreads;
  return launch;
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

  void step(const Batch& batch, void* stream_pointer) override {
    Guard guard(device_);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_pointer);
    const int n = batch.num_envs;
    take_back_spares(batch, stream);
    play_frames(batch, stream);
    const bool pools = batch.options.frameskip >= 2 && batch.options.maxpool;
    if (pools) {
      beside_.fork(stream, [&](cudaStream_t other) {
        const auto sized = [](auto channels, auto most) { return pool<channels, most>; };
        start(pick(batch, sized), blocks_for(n, kEnvsPerPooled), kThreads, 0, other, batch);
      });
    }
    start(keep, blocks_for(n, kThreads), kThreads, 0, stream, batch);
    // The slots are two dimensions, as one has 65,535 blocks at most, which are fewer than a long
    // step's slots.
    const dim3 blocks(blocks_for(n, kThreads), kSegments, batch.options.frameskip);
    start(segments, blocks, kThreads, 0, stream, batch);
    if (batch.options.autoreset == AutoresetMode::kSameStep) {
      observe(batch, false, stream);
      if (pools) beside_.join(stream);
      const size_t bytes = observed_frame_bytes(batch.observation) * batch.observation.stack;
      start(keep_final, dim3(n, 4), kThreads, 0, stream, batch, bytes);
      restart(batch, nullptr, nullptr, true, stream);
      observe(batch, true, stream);
    } else {
      if (batch.options.autoreset == AutoresetMode::kNextStep) {
        // An episode that is emulated may write over a spare instruction buffer, which `pool`
        // reads.
        if (pools && !batch.pool.size) beside_.join(stream);
        restart(batch, nullptr, nullptr, true, stream);
      }
      observe(batch, false, stream);
      if (pools) beside_.join(stream);
    }
    check(cudaGetLastError(), "step");
  }

  void reset(const Batch& batch, const uint8_t* mask, const int64_t* seeds,
             void* stream_pointer) override {
    Guard guard(device_);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_pointer);
    start(mark_reset, blocks_for(batch.num_envs, kThreads), kThreads, 0, stream, batch, mask);
    restart(batch, mask, seeds, false, stream);
    observe(batch, true, stream);
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

  static void restart(const Batch& batch, const uint8_t* mask, const int64_t* seeds, bool by_trace,
                      cudaStream_t stream) {
    const int n = batch.num_envs, blocks = blocks_for(n, kWarp);
    if (batch.pool.size)
      return start(restart_from_pool, n, kThreads, 0, stream, batch, mask, seeds, by_trace);
    take_back_spares(batch, stream);  // the step has been drawn
    start(restart_by_emulation, blocks, kWarp, 0, stream, batch, mask, seeds, by_trace);
  }

  // Nobody has a spare instruction buffer any more.
  static void take_back_spares(const Batch& batch, cudaStream_t stream) {
    check(cudaMemsetAsync(batch.spares.taken, 0, sizeof(*batch.spares.taken), stream),
          "cudaMemsetAsync");
  }

  static void observe(const Batch& batch, bool only_fresh, cudaStream_t stream) {
    const auto sized = [](auto channels, auto most) { return observe_envs<channels, most>; };
    start(pick(batch, sized), batch.num_envs, kThreads, 0, stream, batch, only_fresh);
  }

  // A stream beside the caller's, for what takes long but keeps few multiprocessors busy: it is
  // served first.
  class Beside {
   public:
    void create() {
      int least, greatest;
      check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
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
