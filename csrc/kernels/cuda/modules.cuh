// Loads compiled code at run time: the kernel of a translated ROM, with functions of the CUDA
// driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace cule {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("CUDA failed in ") + what + ": " +
                             cudaGetErrorString(error));
}

// The driver's functions that load and launch compiled code. They are looked up at run time, so the
// library does not link with the driver.
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

inline const Driver& driver() {
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

// Throws if `result` is an error. `log` is the driver's own message.
inline void check_driver(CUresult result, const char* what, const std::string& log = "") {
  if (result == CUDA_SUCCESS) return;
  const std::string sentence = std::string(what) + " failed with CUDA driver error " +
                               std::to_string(result);
  throw std::runtime_error(log.empty() ? sentence : sentence + ": " + log);
}

// A translated ROM's `cubin`, linked and loaded into the current context.
inline CUmodule load_linked(const std::string& cubin) {
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

}  // namespace cule
