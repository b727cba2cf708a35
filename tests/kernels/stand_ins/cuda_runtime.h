// Replaces CUDA's header of this name: a C++ compiler compiles the kernels, and the CPU runs them
// (simulator.cpp). It has the keywords of CUDA's language, the functions that a thread can call,
// and the functions of the runtime that the project uses.
//
// A shared variable is a thread-local one of the system: no other kind can be declared both like
// `__shared__` and like `extern __shared__`. All threads of a block run on one thread of the
// system, so they share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ thread_local
#define SIMULATED __attribute__((visibility("default")))

#define CUDART_VERSION 13000

// The language ------------------------------------------------------------------------------------

struct alignas(8) uint2 {
  unsigned x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// For the thread that runs now.
extern SIMULATED uint3 threadIdx, blockIdx;
extern SIMULATED dim3 blockDim, gridDim;

SIMULATED void __syncthreads();
SIMULATED void __syncwarp(unsigned mask = ~0u);
SIMULATED int __any_sync(unsigned mask, int condition);
SIMULATED unsigned __ballot_sync(unsigned mask, int condition);
SIMULATED unsigned __match_any_sync(unsigned mask, unsigned value);
SIMULATED unsigned __shfl_sync(unsigned mask, unsigned value, int source);
SIMULATED unsigned __reduce_min_sync(unsigned mask, unsigned value);
SIMULATED unsigned __activemask();
SIMULATED void __nanosleep(unsigned nanoseconds);

template <class T>
T __ldg(const T* at) {
  return *at;
}
// Time goes on whenever it is asked for.
inline long long clock64() {
  static long long now = 0;
  return now += 4096;
}
inline int __ffs(int word) { return __builtin_ffs(word); }
inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline int atomicAdd(int* at, int added) { return std::exchange(*at, *at + added); }
inline unsigned atomicMax(unsigned* at, unsigned other) {
  return std::exchange(*at, *at < other ? other : *at);
}
inline unsigned atomicOr(unsigned* at, unsigned bits) { return std::exchange(*at, *at | bits); }

// Launching ---------------------------------------------------------------------------------------

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  void* attrs;
  unsigned numAttrs;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };

namespace simulated {

// A kernel, and the function that calls it: that gets the addresses of the arguments.
struct Kernel {
  const void* entry;
  void (*call)(const void* entry, void** arguments);
};

template <class... Parameters>
struct Caller {
  static void call(const void* entry, void** arguments) {
    call(reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(entry)), arguments,
         std::index_sequence_for<Parameters...>{});
  }

 private:
  template <size_t... kIndex>
  static void call(void (*kernel)(Parameters...), void** arguments,
                   std::index_sequence<kIndex...>) {
    kernel(*static_cast<Parameters*>(arguments[kIndex])...);
  }
};
template <class... Parameters>
Kernel kernel_of(void (*entry)(Parameters...)) {
  return {reinterpret_cast<const void*>(entry), &Caller<Parameters...>::call};
}

// Runs all blocks of the kernel until they end.
SIMULATED cudaError_t launch(const Kernel& kernel, dim3 blocks, dim3 threads, size_t shared_bytes,
                             void** arguments);
SIMULATED cudaError_t allow_shared_bytes(const Kernel& kernel, int bytes);

}  // namespace simulated

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return [&](Parameters... parameters) {
    void* addresses[] = {&parameters...};
    return simulated::launch(simulated::kernel_of(kernel), config->gridDim, config->blockDim,
                             config->dynamicSmemBytes, addresses);
  }(std::forward<Arguments>(arguments)...);
}
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute, int value) {
  return simulated::allow_shared_bytes(simulated::kernel_of(kernel), value);
}

// The device --------------------------------------------------------------------------------------

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream);
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 };
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
// The clock of events moves on only when tests say so (simulator.h).
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);

enum cudaDriverEntryPointFlags { cudaEnableDefault = 0 };
enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1
};
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result);
