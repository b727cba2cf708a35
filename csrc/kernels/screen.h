// An env's screen: its two pictures, and the part of its record that describes them (ScreenState).
#pragma once

#include "kernels/batch.h"

namespace cule {

CULE_INLINE Pictures pictures_of(const Batch& batch, size_t env) {
  return {batch.pictures + env * 2 * batch.picture_bytes, batch.picture_bytes,
          batch.row_of + env * 2 * Pictures::kRows};
}

CULE_INLINE ScreenState& screen_of(const Batch& batch, size_t env) {
  constexpr size_t kWord = offsetof(EnvRecord, screen) / 4;
  const RecordLayout& records = batch.records;
  return *reinterpret_cast<ScreenState*>(records.words + kWord * records.word_stride +
                                         env * records.env_stride);
}

// The picture of the last frame, and the one of the frame before.
struct PicturePair {
  Picture front, back;
};
CULE_INLINE PicturePair picture_pair(const Batch& batch, size_t env) {
  const uint32_t front = screen_of(batch, env).front & 1;
  const Pictures pictures = pictures_of(batch, env);
  return {pictures[front], pictures[front ^ 1]};
}

// Whether the plan pools onto the frame that is shown, but that frame was not kept
// (kFaultFrameLost).
CULE_INLINE bool lacks_shown(const Batch& batch, size_t env, ObservationPlan plan) {
  return pools_onto_shown(plan) && !batch.keeps_pooled &&
         screen_of(batch, env).shown == ShownFrames::kKeptFrame;
}

}  // namespace cule
