// The functions of CUDA's runtime and driver that the project calls, for the simulated GPU.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "cuda.h"
#include "simulator.h"

// A function of Linux's loader: returns the address of a thread-local variable of a library.
struct ThreadVariable {
  unsigned long module, offset;
};
extern "C" void* __tls_get_addr(ThreadVariable* variable);

namespace {

// The limits of a launch on any GPU.
constexpr unsigned kMaxThreads = 1024, kMaxBlocks = 65'535, kMaxBlocksX = 0x7FFFFFFF;
constexpr size_t kSharedUnasked = 48 * 1024;

std::mutex one_at_a_time;
std::string last_words;
cudaError_t last_error = cudaSuccess;
std::map<const void*, int> allowed_shared_bytes;

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace

// Launches ----------------------------------------------------------------------------------------

namespace simulated {

std::pair<char*, size_t> shared_variables_of(const void* entry) {
  struct Search {
    uintptr_t entry;
    ThreadVariable first;
    size_t bytes;
  } search{reinterpret_cast<uintptr_t>(entry), {0, 0}, 0};
  const auto look = [](dl_phdr_info* info, size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    bool inside = false;
    size_t bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& header = info->dlpi_phdr[i];
      const uintptr_t begin = info->dlpi_addr + header.p_vaddr, end = begin + header.p_memsz;
      if (header.p_type == PT_LOAD) inside |= wanted.entry >= begin && wanted.entry < end;
      if (header.p_type == PT_TLS) bytes = header.p_memsz;
    }
    if (inside) wanted.first.module = info->dlpi_tls_modid, wanted.bytes = bytes;
    return static_cast<int>(inside);
  };
  dl_iterate_phdr(look, &search);
  if (search.bytes == 0) return {nullptr, 0};
  return {static_cast<char*>(__tls_get_addr(&search.first)), search.bytes};
}

cudaError_t launch(const Kernel& kernel, dim3 blocks, dim3 threads, size_t shared_bytes,
                   void** arguments) {
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  const bool any_blocks = blocks.x && blocks.y && blocks.z && blocks.x <= kMaxBlocksX &&
                          blocks.y <= kMaxBlocks && blocks.z <= kMaxBlocks;
  if (!any_blocks || threads.x == 0 || threads.x > kMaxThreads || threads.y != 1 ||
      threads.z != 1) {
    return remember(cudaErrorInvalidConfiguration);
  }
  const auto allowed = allowed_shared_bytes.find(kernel.entry);
  const size_t most = allowed == allowed_shared_bytes.end() ? 0
                                                            : static_cast<size_t>(allowed->second);
  if (shared_bytes > std::max(most, kSharedUnasked)) return remember(cudaErrorInvalidValue);
  try {
    run(kernel, blocks, threads.x, shared_bytes, arguments);
  } catch (const std::exception& problem) {
    last_words = problem.what();
    return remember(cudaErrorLaunchFailure);
  }
  return cudaSuccess;
}

cudaError_t allow_shared_bytes(const Kernel& kernel, int bytes) {
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  if (bytes < 0 || static_cast<size_t>(bytes) > kMaxShared) return remember(cudaErrorInvalidValue);
  allowed_shared_bytes[kernel.entry] = bytes;
  return cudaSuccess;
}

}  // namespace simulated

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = simulated::settings().multiprocessors;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : remember(cudaErrorInvalidDevice);
}
cudaError_t cudaFree(void* memory) {
  return memory ? remember(cudaErrorInvalidValue) : cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode of_thread = cudaStreamCaptureModeGlobal;
  std::swap(*mode, of_thread);
  return cudaSuccess;
}

struct CUevent_st {
  float at;
};

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = simulated::stream().captured ? cudaStreamCaptureStatusActive
                                         : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
// All work is done in the order of its launches, whatever its stream.
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st{0.0f};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  event->at = simulated::stream().milliseconds;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  return simulated::stream().busy ? remember(cudaErrorNotReady) : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = end->at - begin->at;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorLaunchFailure: return last_words.c_str();
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    default: return "invalid argument";
  }
}

// The driver --------------------------------------------------------------------------------------

struct CUlinkState_st {
  std::string path;
};
struct CUfunc_st {
  simulated::Kernel kernel;
};
struct CUmod_st {
  void* library;
  std::map<std::string, CUfunc_st> functions;
};

CUresult cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState* link) {
  *link = new CUlinkState_st;
  return CUDA_SUCCESS;
}
CUresult cuLinkAddData(CUlinkState link, CUjitInputType, void* data, size_t bytes, const char*,
                       unsigned, CUjit_option*, void**) {
  link->path.assign(static_cast<const char*>(data), bytes);
  return CUDA_SUCCESS;
}
CUresult cuLinkComplete(CUlinkState link, void** cubin, size_t* bytes) {
  *cubin = link->path.data();
  if (bytes) *bytes = link->path.size();
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState link) {
  delete link;
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  void* library = dlopen(static_cast<const char*>(image), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return CUDA_ERROR_INVALID_IMAGE;
  }
  *module = new CUmod_st{library, {}};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  dlclose(module->library);
  delete module;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  void* call = dlsym(module->library, (std::string("call_") + name).c_str());
  if (!call) return CUDA_ERROR_NOT_FOUND;
  *function = &module->functions[name];
  (*function)->kernel = {call, reinterpret_cast<decltype(simulated::Kernel::call)>(call)};
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int value) {
  return simulated::allow_shared_bytes(function->kernel, value) == cudaSuccess
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y,
                        unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                        unsigned threads_z, unsigned shared_bytes, CUstream, void** arguments,
                        void**) {
  // A translated kernel's arguments are the batch, lanes and warps.
  simulated::lanes_played() = *static_cast<int*>(arguments[1]);
  const cudaError_t error = simulated::launch(function->kernel, {blocks_x, blocks_y, blocks_z},
                                              {threads_x, threads_y, threads_z}, shared_bytes,
                                              arguments);
  if (error == cudaSuccess) return CUDA_SUCCESS;
  return error == cudaErrorLaunchFailure ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_INVALID_VALUE;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  static const std::map<std::string, void*> kFunctions = {
#define SIMULATED_FUNCTION(name) {#name, reinterpret_cast<void*>(&name)}
      SIMULATED_FUNCTION(cuLinkCreate),        SIMULATED_FUNCTION(cuLinkAddData),
      SIMULATED_FUNCTION(cuLinkComplete),      SIMULATED_FUNCTION(cuLinkDestroy),
      SIMULATED_FUNCTION(cuModuleLoadData),    SIMULATED_FUNCTION(cuModuleUnload),
      SIMULATED_FUNCTION(cuModuleGetFunction), SIMULATED_FUNCTION(cuFuncSetAttribute),
      SIMULATED_FUNCTION(cuLaunchKernel),
#undef SIMULATED_FUNCTION
  };
  const auto at = kFunctions.find(name);
  *found = at == kFunctions.end() ? nullptr : at->second;
  *result = *found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
