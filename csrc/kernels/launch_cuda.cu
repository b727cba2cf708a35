// The CUDA backend: a step is a handful of kernels on the caller's stream, with no allocation and no synchronisation.
//
//   play      CPU part: one env a thread, few or many threads of a warp by the number of envs; or the same, compiled for one ROM
//   replay    TIA part, first half: state only, one env a thread
//   segments  TIA part, second half: 15 scanlines of one env a thread
//   restart   resets: a pool state copied by a block, or an episode emulated by a thread
//   observe_band   observations: a quarter of one env's new frame a block
#include <cuda.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "kernels/launch.h"
#include "kernels/observe.h"
#include "kernels/play.cuh"
#include "kernels/reset.h"
#include "kernels/segments.h"

namespace cule {
namespace {

constexpr int kThreads = 128;
constexpr int kBands = 4;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA failed in ") + what + ": " + cudaGetErrorString(error));
}

__global__ void __launch_bounds__(kPlayThreads, kPlayBlocks) play(const __grid_constant__ Batch batch, int lanes) {
  play_envs(batch, lanes, DynamicCore{}, nullptr);
}

__global__ void __launch_bounds__(kThreads) replay(const __grid_constant__ Batch batch, int lanes) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int env = thread / kWarp * lanes + thread % kWarp;
  if (thread % kWarp >= lanes || env >= batch.num_envs) return;
  replay_segments(batch, env, batch.buffers + static_cast<size_t>(env) * batch.buffer_capacity);
}

__global__ void __launch_bounds__(kThreads) segments(const __grid_constant__ Batch batch) {
  const int env = blockIdx.x * blockDim.x + threadIdx.x;
  if (env >= batch.num_envs) return;
  const uint32_t found = draw_segment(batch, env, blockIdx.y, batch.buffers + static_cast<size_t>(env) * batch.buffer_capacity);
  constexpr size_t kWord = (offsetof(EnvRecord, tia) + offsetof(TiaState, collisions)) / 4;
  static_assert((offsetof(TiaState, collisions) & 3) == 0, "the latches are the low half of their word");
  if (found) atomicOr(batch.records.words + kWord * batch.records.word_stride + env * batch.records.env_stride, found);
}

// Copies a state of the pool over each env that starts an episode; a block for each env.
__global__ void __launch_bounds__(kThreads) restart_from_pool(const __grid_constant__ Batch batch, const uint8_t* mask, const int64_t* seeds,
                                                              bool by_trace) {
  const size_t env = blockIdx.x;
  if (by_trace ? !(batch.traces[env].flags & kResetNow) : (mask && !mask[env])) return;
  __shared__ size_t slot;
  if (threadIdx.x == 0) slot = restart_record(batch, env, seeds ? seeds[env] : kNoSeed);
  __syncthreads();
  const uint4* from = reinterpret_cast<const uint4*>(batch.pool.pictures + slot * 2 * batch.picture_bytes);
  uint4* to = reinterpret_cast<uint4*>(pictures_of(batch, env));
  for (uint32_t i = threadIdx.x; i < 2 * batch.picture_bytes / sizeof(uint4); i += kThreads) to[i] = from[i];
}

// Emulates the start of an episode for each env that starts one; a thread for each env.
__global__ void __launch_bounds__(kWarp) restart_by_emulation(const __grid_constant__ Batch batch, const uint8_t* mask, const int64_t* seeds,
                                                         bool by_trace) {
  const size_t env = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (env >= static_cast<size_t>(batch.num_envs)) return;
  if (by_trace ? !(batch.traces[env].flags & kResetNow) : (mask && !mask[env])) return;
  CollisionProbe probe;
  restart_exactly(batch, env, seeds ? seeds[env] : kNoSeed, batch.buffers + env * batch.buffer_capacity,
                  DynamicCore{}, probe);
}

// Marks what `observe` has to do after a reset by mask.
__global__ void __launch_bounds__(kThreads) mark_reset(const __grid_constant__ Batch batch, const uint8_t* mask) {
  const int env = blockIdx.x * blockDim.x + threadIdx.x;
  if (env < batch.num_envs) batch.traces[env].flags = !mask || mask[env] ? kPoolLast | kFresh | kResetNow : 0;
}

__global__ void __launch_bounds__(kThreads) keep_final(const __grid_constant__ Batch batch, size_t bytes) {
  const size_t env = blockIdx.x;
  if (!(batch.terminated[env] || batch.truncated[env])) return;
  const uint8_t* from = batch.observations + env * bytes;
  uint8_t* to = batch.final_observations + env * bytes;
  for (size_t i = blockIdx.y * blockDim.x + threadIdx.x; i < bytes; i += gridDim.y * blockDim.x) to[i] = from[i];
}

// Whether this pass of the observation kernels looks at the env: all that stepped, or only those that were reset.
__device__ __forceinline__ bool looks_at(uint32_t flags, bool only_fresh) { return !only_fresh || (flags & kFresh); }

// Which of an env's two pictures is the last.
__device__ __forceinline__ uint32_t front_of(const Batch& batch, size_t env) {
  constexpr size_t kByte = offsetof(EnvRecord, tia) + offsetof(TiaState, front);
  return batch.records.words[kByte / 4 * batch.records.word_stride + env * batch.records.env_stride] >> kByte % 4 * 8 & 1;
}

// Brings source rows [first, end) of the env's pooled frame up to date, four bytes a thread. Doing a row twice changes nothing.
__device__ __forceinline__ void pool_rows(const Batch& batch, size_t env, uint32_t flags, const uint8_t* palette, int first, int end) {
  const int channels = batch.observation.channels;
  const uint32_t row_bytes = static_cast<uint32_t>(kLinePixels * channels);
  const uint32_t front_index = front_of(batch, env);
  const uint8_t* pictures = pictures_of(batch, env);
  const uint8_t* front = pictures + front_index * batch.picture_bytes;
  const uint8_t* back = pictures + (front_index ^ 1) * batch.picture_bytes;
  uint8_t* pooled = batch.pooled + env * batch.picture_bytes * channels;
  for (uint32_t i = first * row_bytes + 4 * threadIdx.x; i < end * row_bytes; i += 4 * kThreads) {
    const uint32_t old = flags & (kPoolBackOntoOld | kLastResumed) ? *reinterpret_cast<uint32_t*>(pooled + i) : 0;
    uint32_t out = 0;
#pragma unroll
    for (uint32_t b = 0; b < 4; ++b) {
      out |= static_cast<uint32_t>(pool_byte(flags, front, back, palette, channels, i + b, static_cast<uint8_t>(old >> 8 * b))) << 8 * b;
    }
    *reinterpret_cast<uint32_t*>(pooled + i) = out;
  }
}

// Moves bytes [begin, end) of each of the stack's frames but the newest on by one frame.
template <class Word>
__device__ __forceinline__ void move_stack(uint8_t* stack, int frames, uint32_t frame_bytes, uint32_t begin, uint32_t end, bool fresh) {
  const uint32_t words = frame_bytes / sizeof(Word);
  Word* to = reinterpret_cast<Word*>(stack);
  for (uint32_t i = begin / sizeof(Word) + threadIdx.x; i < end / sizeof(Word); i += kThreads) {
    for (int k = 0; k + 1 < frames; ++k) to[k * words + i] = fresh ? Word{} : to[(k + 1) * words + i];
  }
}

// Pictures to observations: a block makes one of `gridDim.y` bands of an env's new frame, from the rows that the band covers.
__global__ void __launch_bounds__(kThreads) observe_band(const __grid_constant__ Batch batch, bool only_fresh) {
  const size_t env = blockIdx.x;
  const uint32_t flags = batch.traces[env].flags;
  if (!looks_at(flags, only_fresh)) return;
  const ObservationFormat& format = batch.observation;
  const int channels = format.channels;
  const Resample& resample = format.resamples[batch.group[env]];
  const int begin = format.height * static_cast<int>(blockIdx.y) / static_cast<int>(gridDim.y);
  const int end = format.height * static_cast<int>(blockIdx.y + 1) / static_cast<int>(gridDim.y);

  __shared__ uint8_t palette[256 * 3];
  if (flags & (kPoolBoth | kPoolLast | kPoolBackOntoOld)) {
    const uint8_t* colors = palette_of(batch, config_of(batch, env));
    for (int i = threadIdx.x; i < 256 * channels; i += kThreads) palette[i] = colors[i];
    __syncthreads();
    const bool copied = resample.kind == ResampleKind::kCopy;
    const ResampleSpan first = copied ? ResampleSpan{begin, 1, 0} : resample.rows[begin];
    const ResampleSpan last = copied ? ResampleSpan{end - 1, 1, 0} : resample.rows[end - 1];
    pool_rows(batch, env, flags, palette, first.first, last.first + last.count);
    __syncthreads();
  }

  const uint32_t row_bytes = static_cast<uint32_t>(format.width * channels), frame_bytes = format.height * row_bytes;
  uint8_t* stack = batch.observations + env * frame_bytes * format.stack;
  const uint32_t from = begin * row_bytes, to = end * row_bytes;
  if ((frame_bytes | from | to) % sizeof(uint4) == 0) move_stack<uint4>(stack, format.stack, frame_bytes, from, to, flags & kFresh);
  else if ((frame_bytes | from | to) % 4 == 0) move_stack<uint32_t>(stack, format.stack, frame_bytes, from, to, flags & kFresh);
  else move_stack<uint8_t>(stack, format.stack, frame_bytes, from, to, flags & kFresh);
  __syncthreads();
  const uint8_t* pooled = batch.pooled + env * batch.picture_bytes * channels;
  uint8_t* newest = stack + (format.stack - 1) * frame_bytes;
  for (uint32_t i = from + threadIdx.x; i < to; i += kThreads) {
    const uint32_t pixel = channels == 1 ? i : i / 3;
    const int x = static_cast<int>(pixel % format.width), y = static_cast<int>(pixel / format.width);
    newest[i] = resample_byte(resample, pooled, channels, y, x, static_cast<int>(i - pixel * channels));
  }
}

// The driver's functions that load compiled code. They are asked for at run time, so that nothing links with the driver.
struct Driver {
  decltype(&cuModuleLoadData) load_module;
  decltype(&cuModuleUnload) unload_module;
  decltype(&cuModuleGetFunction) get_function;
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
    find_in_driver("cuModuleLoadData", d.load_module);
    find_in_driver("cuModuleUnload", d.unload_module);
    find_in_driver("cuModuleGetFunction", d.get_function);
    find_in_driver("cuLaunchKernel", d.launch);
    return d;
  }();
  return found;
}

void check_driver(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(std::string(what) + " failed with CUDA driver error " + std::to_string(result));
}

// How many threads of each warp get an env: few where envs are few, as a lone warp's time is its longest chain of instructions.
int lanes_for(int num_envs) { return num_envs <= 1024 ? 2 : num_envs <= 2048 ? 4 : num_envs <= 8192 ? 8 : num_envs <= 16384 ? 16 : 32; }

int blocks_for(int count, int each) { return (count + each - 1) / each; }

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int device) : device_(device) { Guard guard(device_); }
  ~CudaBackend() override {
    if (translated_) driver().unload_module(module_);
  }

  void load_translation(const std::string& cubin) override {
    Guard guard(device_);
    check(cudaFree(nullptr), "starting CUDA");
    check_driver(driver().load_module(&module_, cubin.data()), "loading a translated ROM");
    check_driver(driver().get_function(&translated_, module_, "play_translated"), "looking into a translated ROM");
  }

  void step(const Batch& batch, void* stream_pointer) override {
    Guard guard(device_);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_pointer);
    const int n = batch.num_envs;
    const int lanes = lanes_for(n);
    play_frames(batch, lanes, stream);
    replay<<<blocks_for(n * (kWarp / lanes), kThreads), kThreads, 0, stream>>>(batch, lanes);
    segments<<<dim3(blocks_for(n, kThreads), kSegmentSlots), kThreads, 0, stream>>>(batch);
    if (batch.options.autoreset == AutoresetMode::kSameStep) {
      observe(batch, false, stream);
      const size_t bytes = static_cast<size_t>(observation_bytes(batch)) * batch.observation.stack;
      keep_final<<<dim3(n, 4), kThreads, 0, stream>>>(batch, bytes);
      restart(batch, nullptr, nullptr, true, stream);
      observe(batch, true, stream);
    } else {
      if (batch.options.autoreset == AutoresetMode::kNextStep) restart(batch, nullptr, nullptr, true, stream);
      observe(batch, false, stream);
    }
    check(cudaGetLastError(), "step");
  }

  void reset(const Batch& batch, const uint8_t* mask, const int64_t* seeds, void* stream_pointer) override {
    Guard guard(device_);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_pointer);
    mark_reset<<<blocks_for(batch.num_envs, kThreads), kThreads, 0, stream>>>(batch, mask);
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

  void play_frames(const Batch& batch, int lanes, cudaStream_t stream) const {
    const int blocks = blocks_for(batch.num_envs, kPlayThreads / kWarp * lanes);
    if (!translated_) {
      play<<<blocks, kPlayThreads, 0, stream>>>(batch, lanes);
      return;
    }
    void* arguments[] = {const_cast<Batch*>(&batch), &lanes};
    check_driver(driver().launch(translated_, blocks, 1, 1, kPlayThreads, 1, 1, 0, stream, arguments, nullptr), "play_translated");
  }

  static uint32_t observation_bytes(const Batch& batch) {
    return static_cast<uint32_t>(batch.observation.height * batch.observation.width * batch.observation.channels);
  }

  static void restart(const Batch& batch, const uint8_t* mask, const int64_t* seeds, bool by_trace, cudaStream_t stream) {
    if (batch.pool.size) restart_from_pool<<<batch.num_envs, kThreads, 0, stream>>>(batch, mask, seeds, by_trace);
    else restart_by_emulation<<<blocks_for(batch.num_envs, kWarp), kWarp, 0, stream>>>(batch, mask, seeds, by_trace);
  }

  static void observe(const Batch& batch, bool only_fresh, cudaStream_t stream) {
    const int n = batch.num_envs;
    const int bands = batch.observation.height < kBands ? batch.observation.height : kBands;
    observe_band<<<dim3(n, bands), kThreads, 0, stream>>>(batch, only_fresh);
  }

  int device_;
  CUmodule module_ = nullptr;
  CUfunction translated_ = nullptr;
};

}  // namespace

bool has_cuda() { return true; }

Backend* make_cuda_backend(int device) { return new CudaBackend(device); }

}  // namespace cule
