// Replaces CUDA's header of this name. It has the driver's functions that load and launch
// translated games. Here a cubin is the path of a shared library, whose function `call_NAME` calls
// the kernel NAME (simulated::Kernel::call).
#pragma once

#include <cstddef>

enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_LAUNCH_FAILED = 719,
};
enum CUjit_option { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };
enum CUjitInputType { CU_JIT_INPUT_CUBIN = 0 };
enum CUfunction_attribute { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUlinkState_st* CUlinkState;
typedef struct CUstream_st* CUstream;

CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* link);
CUresult cuLinkAddData(CUlinkState link, CUjitInputType type, void* data, size_t bytes,
                       const char* name, unsigned count, CUjit_option* options, void** values);
CUresult cuLinkComplete(CUlinkState link, void** cubin, size_t* bytes);
CUresult cuLinkDestroy(CUlinkState link);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
CUresult cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y,
                        unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                        unsigned threads_z, unsigned shared_bytes, CUstream stream,
                        void** arguments, void** extra);
