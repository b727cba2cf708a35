// The phases of a step and of a reset, in their order. Both backends run these lists. The CPU
// backend runs a list for one env after the other (cpu/cpu_backend.cpp). The CUDA backend runs it
// once for all envs, with a kernel for each phase (cuda/cuda_backend.cu). `Phases` has a function
// for each phase:
//
//   play           the CPU part: plays frames, with the game's rules, rewards, endings (play.h)
//   hear           makes the sound of the step's frames, if it is asked for (hear.h)
//   prepare        saves what drawing would lose, and stores the TIA's new state (prepare.h)
//   draw           draws the frames that are seen; finds the collisions in all others (draw.h)
//   see            finds the boxes of the step's last two frames, if objects are asked for (see.h)
//   list           lists the objects of the step, or of an episode that began instead of it
//   observe        makes the observation of the step, or of an episode that began instead of it, if
//                  observations show frames (observe/)
//   keep_final     copies the observation with which an episode ended
//   restart        starts an episode for each env that is to be reset (reset.h)
//   observe_start  makes its first observation
//   list_start     lists the objects that it shows
//   choose         in a reset: chooses the envs that are to be reset (reset.h)
#pragma once

#include "kernels/hear.h"
#include "kernels/object_boxes.h"

namespace cule {

template <class Phases>
inline void run_step(const Batch& batch, Phases&& phases) {
  phases.play();
  if (hears(batch)) phases.hear();
  phases.prepare();
  phases.draw();
  if (sees(batch)) phases.see();
  // In this mode an env whose episode has ended is reset instead of its next step: it did not play.
  if (batch.options.autoreset == AutoresetMode::kNextStep) phases.restart();
  if (sees(batch)) phases.list();
  if (shows_frames(batch)) phases.observe();
  if (batch.options.autoreset == AutoresetMode::kSameStep) {
    phases.keep_final();
    phases.restart();
    if (sees(batch)) phases.list_start();
    if (shows_frames(batch)) phases.observe_start();
  }
}

template <class Phases>
inline void run_reset(const Batch& batch, Phases&& phases) {
  phases.choose();
  phases.restart();
  if (sees(batch)) phases.list_start();
  if (shows_frames(batch)) phases.observe_start();
}

}  // namespace cule
