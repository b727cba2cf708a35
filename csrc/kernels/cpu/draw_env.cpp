#include "kernels/cpu/draw_env.h"

#include "kernels/cpu/draw_frames.h"

namespace cule {
namespace {

CULE_FOR_AVX2 void draw_with_avx2(const Batch& batch, size_t env, const Recording& recording) {
  draw_frames<Pixels32>(batch, env, recording);
}

void draw_with_any(const Batch& batch, size_t env, const Recording& recording) {
  draw_frames<Pixels16>(batch, env, recording);
}

}  // namespace

void draw_env(const Batch& batch, size_t env, const Recording& recording) {
  static const bool kAvx2 = has_avx2();
  if (kAvx2) draw_with_avx2(batch, env, recording);
  else draw_with_any(batch, env, recording);
}

}  // namespace cule
