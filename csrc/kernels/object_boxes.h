// An env's objects and boxes in the memory of a batch, if they are asked for (see.h).
#pragma once

#include "kernels/batch.h"
#include "tia/render/object_frames.h"

namespace cule {

CULE_INLINE bool sees(const Batch& batch) { return batch.max_objects != 0; }

CULE_INLINE size_t boxes_of_env(const Batch& batch) {
  return 2 * (static_cast<size_t>(batch.max_objects) + 1) * kObjectFields;
}
CULE_INLINE const int16_t* object_facts_of(const Batch& batch, size_t env) {
  return batch.object_facts +
         static_cast<size_t>(batch.group[env]) * kObjectFactRows * kObjectFactColumns;
}
CULE_INLINE ObjectFrames object_frames_of(const Batch& batch, size_t env) {
  if (!sees(batch)) return {nullptr, nullptr, 0, 0};
  return {object_facts_of(batch, env), batch.boxes + env * boxes_of_env(batch), batch.max_objects,
          static_cast<int>(config_of(batch, env).height)};
}
// How many numbers an env's list has.
CULE_INLINE size_t object_numbers(const Batch& batch) {
  return static_cast<size_t>(batch.max_objects) * kObjectFields;
}
CULE_INLINE int16_t* objects_of(const Batch& batch, size_t env) {
  return batch.objects + env * object_numbers(batch);
}
CULE_INLINE int16_t* final_objects_of(const Batch& batch, size_t env) {
  return batch.final_objects + env * object_numbers(batch);
}

// Copies the boxes of the start state in `slot`.
template <class Lanes>
CULE_INLINE void copy_boxes_from(const Batch& batch, size_t env, const ResetPool& pool, size_t slot,
                                 const Lanes& lanes) {
  const size_t count = boxes_of_env(batch);
  int16_t* to = batch.boxes + env * count;
  for (size_t i = static_cast<size_t>(lanes.lane()); i < count; i += Lanes::kCount)
    to[i] = pool.boxes[slot * count + i];
}

}  // namespace cule
