// The phases of a step and of a reset, in their order. Both backends run these lists: the CPU's for
// one env after the other (cpu/cpu_backend.cpp), CUDA's for all envs at once, each phase a kernel
// (cuda/cuda_backend.cu). `Phases` has a function for each phase:
//
//   play           the CPU part: frames, the game's rules, rewards, endings (play.h)
//   prepare        saves what drawing would lose; the TIA's state is the new one (prepare.h)
//   draw           frames that show, and the collisions of those that do not (draw.h)
//   observe        the observation of the step, or of an episode that began in its place (observe/)
//   keep_final     the observation with which an episode ended
//   restart        an episode for each env that is to be reset (reset.h)
//   observe_start  its first observation
//   choose         in place of a step: which envs are to be reset (reset.h)
#pragma once

#include "kernels/batch.h"

namespace cule {

template <class Phases>
inline void run_step(const Batch& batch, Phases&& phases) {
  phases.play();
  phases.prepare();
  phases.draw();
  // In this mode an env is reset in place of its next step: it has not played.
  if (batch.options.autoreset == AutoresetMode::kNextStep) phases.restart();
  phases.observe();
  if (batch.options.autoreset == AutoresetMode::kSameStep) {
    phases.keep_final();
    phases.restart();
    phases.observe_start();
  }
}

template <class Phases>
inline void run_reset(Phases&& phases) {
  phases.choose();
  phases.restart();
  phases.observe_start();
}

}  // namespace cule
