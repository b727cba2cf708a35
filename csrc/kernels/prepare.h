// What happens between the CPU part of a step and drawing: saves what drawing would lose, and
// stores in the env's record the state of the TIA and the pictures after the step.
#pragma once

#include "kernels/observe/pool.h"
#include "kernels/tia_state.h"

namespace cule {

// Whether the step of `trace` draws over pictures that the newest observation shows, and the frame
// that it shows may still be needed.
CULE_INLINE bool draws_over_shown(const Batch& batch, size_t env, const StepTrace& trace) {
  return shows_frames(batch) && trace.entries > 0 && needs_shown(trace.plan) &&
         screen_of(batch, env).shown != ShownFrames::kKeptFrame;
}

// Called before the pictures that the newest observation shows are drawn over. Copies the frame
// that it shows to `pooled`, if this step or a later one may need it.
template <class Lanes>
CULE_HD inline void keep_shown(const Batch& batch, size_t env, const Lanes& lanes) {
  ScreenState& screen = screen_of(batch, env);
  if (batch.keeps_pooled || pools_onto_shown(batch.traces[env].plan)) {
    const ObservationPlan again = plan_of(frame_of_pictures(screen.shown));
    pool_frame(batch, env, again, picture_pair(batch, env), lanes);
  }
  lanes.sync();
  if (lanes.lane() == 0) screen.shown = ShownFrames::kKeptFrame;
}

// Makes the pooled frame black: an earlier step should have kept it, but did not.
template <class Lanes>
CULE_HD inline void blacken_pooled(const Batch& batch, size_t env, const Lanes& lanes) {
  uint8_t* pooled = pooled_of(batch, env);
  const uint32_t bytes = batch.picture_bytes * static_cast<uint32_t>(batch.observation.channels);
  for (uint32_t i = static_cast<uint32_t>(lanes.lane()); i < bytes; i += Lanes::kCount)
    pooled[i] = 0;
}

// Gives each scanline its own row. Then drawing one scanline does not change another.
template <class Lanes>
CULE_HD inline void separate_rows(const Batch& batch, size_t env, const Lanes& lanes) {
  const Pictures pictures = pictures_of(batch, env);
  const uint32_t height = config_of(batch, env).height;
  // Each lane has lines of its own. A shared row belongs to the first line that shows it, and that
  // line is not copied. So no row is overwritten that another lane has to read.
  for (uint32_t i = static_cast<uint32_t>(lanes.lane()); i < 2 * height; i += Lanes::kCount) {
    const uint32_t which = i >= height, line = i - which * height;
    const Picture picture = pictures[which];
    if (picture.row_of[line] == line) continue;
    const uint32_t* from = reinterpret_cast<const uint32_t*>(picture.row(line));
    uint32_t* to = reinterpret_cast<uint32_t*>(pictures.own_row(which, static_cast<int>(line)));
    for (int word = 0; word < kLinePixels / 4; ++word) to[word] = from[word];
  }
  lanes.sync();
  own_rows(pictures, lanes);
}

// Whether each scanline needs its own row before a step is drawn: some lines will not be drawn, or
// the frame is pooled.
CULE_INLINE bool needs_separate_rows(ObservationPlan plan) {
  return plan.leaves_lines || needs_pooled(plan);
}

// Whether drawing would lose anything; save_pictures saves it.
CULE_INLINE bool must_save(const Batch& batch, size_t env, const StepTrace& trace) {
  if (trace.entries == 0) return false;
  return needs_separate_rows(trace.plan) || draws_over_shown(batch, env, trace);
}
template <class Lanes>
CULE_HD inline void save_pictures(const Batch& batch, size_t env, const Lanes& lanes) {
  const StepTrace& trace = batch.traces[env];
  if (lacks_shown(batch, env, trace.plan)) blacken_pooled(batch, env, lanes);
  const bool draws_over = draws_over_shown(batch, env, trace);
  lanes.sync();
  if (draws_over) keep_shown(batch, env, lanes);
  lanes.sync();
  if (needs_separate_rows(trace.plan)) separate_rows(batch, env, lanes);
}

// Stores in the env's record the state in which the step leaves the TIA, and which picture is the
// front one. Until then the record has their state before the step.
CULE_INLINE void store_step_end(const Batch& batch, size_t env, const SegmentStarts& starts) {
  const size_t end = segment_slots(batch.options);
  if (starts.entry_of(end) == kNoSegment) return;
  SegmentStart state;
  starts.load(end, state);
  store_part(batch.records, env, offsetof(EnvRecord, tia), state.tia);
  screen_of(batch, env).front = batch.traces[env].plan.last_picture;
}

}  // namespace cule
