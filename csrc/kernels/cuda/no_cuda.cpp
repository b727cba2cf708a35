// Replaces cuda/cuda_backend.cu in a build without CUDA.
#include <stdexcept>

#include "kernels/backend.h"

namespace cule {

bool has_cuda() { return false; }

Backend* make_cuda_backend(int, int) {
  throw std::runtime_error(
      "device=\"cuda\" was asked for, but this cule was built without CUDA: build it where nvcc is "
      "found, with CULE_CUDA=ON");
}

}  // namespace cule
