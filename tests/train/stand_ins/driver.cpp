// A stand-in for CUDA's driver, of a GPU with 132 multiprocessors and 80 GiB whose process is a client of the
// Multi-Process Service: the limit that the environment has when cuInit is called holds from then on,
// rounded down to pairs.
#include <cstddef>
#include <cstdlib>

namespace {
constexpr std::size_t kBytes = std::size_t{80} << 30;
constexpr int kMultiprocessors = 132, kNotInitialized = 3, kInvalidDevice = 101;
bool initialized = false;
int given = kMultiprocessors;
}  // namespace

extern "C" {
__attribute__((visibility("default"))) int cuInit(unsigned) {
  const char* percentage = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  if (!initialized && percentage) given = kMultiprocessors * std::atoi(percentage) / 200 * 2;
  initialized = true;
  return 0;
}

__attribute__((visibility("default"))) int cuDeviceGetCount(int* count) {
  *count = 2;
  return initialized ? 0 : kNotInitialized;
}

__attribute__((visibility("default"))) int cuDeviceGet(int* device, int number) {
  *device = number;
  return number < 2 ? 0 : kInvalidDevice;
}

__attribute__((visibility("default"))) int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = kBytes;
  return initialized ? 0 : kNotInitialized;
}

__attribute__((visibility("default"))) int cuDeviceGetAttribute(int* value, int attribute, int) {
  if (attribute != 16) return kInvalidDevice;  // the count of multiprocessors
  *value = given;
  return initialized ? 0 : kNotInitialized;
}
}
