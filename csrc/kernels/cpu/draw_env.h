// Draws with the longest vectors that the processor has. It is compiled apart from the CPU part of
// a step.
#pragma once

#include "kernels/draw.h"

namespace cule {

// Does all pieces of a step (kernels/cpu/draw_frames.h). Finds the boxes of objects, too, if they
// are asked for.
void draw_env(const Batch& batch, size_t env, const Recording& recording);

}  // namespace cule
