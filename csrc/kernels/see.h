// The objects that a step or a reset shows, if they are asked for: boxes of the last two frames
// (tia/render/object_frames.h), and what they are by the facts of the game.
//
// A GPU finds the runs of a step's last two frames from the log of writes, as drawing does: a
// thread for each segment. Where they are not those of the step before, a warp joins them to boxes.
// A warp for each frame joins those of its segments. A CPU finds boxes while it draws
// (cpu/draw_frames.h). Starts of episodes are seen as they are played (console/session.h), or come
// from the pool. `list_objects` then makes an env's list.
#pragma once

#include "kernels/draw.h"
#include "kernels/object_boxes.h"
#include "kernels/object_list.h"
#include "tia/render/segment_boxes.h"

namespace cule {

// Where the boxes of frame number `frame` of a step go: those of the last two are kept.
CULE_INLINE bool is_seen(const StepTrace& trace, uint32_t frame) {
  return frame + 2 >= trace.frames;
}
CULE_INLINE FrameBoxes boxes_of_frame(const Batch& batch, size_t env, uint32_t frame) {
  const ObjectFrames frames = object_frames_of(batch, env);
  return frame + 1u == batch.traces[env].frames ? frames.last() : frames.before();
}

// Before a step of one frame: the last becomes the one before it.
template <class Lanes>
CULE_INLINE void move_boxes_on(const Batch& batch, size_t env, const Lanes& lanes) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries != 0 && trace.frames == 1) object_frames_of(batch, env).move_on(lanes);
}

// Finds the boxes of one frame of a step, in one thread.
CULE_COLD void see_frame(const Batch& batch, size_t env, const Recording& recording,
                         uint32_t frame) {
  const ObjectFrames frames = object_frames_of(batch, env);
  LineBits words[LineRoom<LineBits>::kSize] = {};
  BoxFinder finder(frames.settings, boxes_of_frame(batch, env, frame));
  ObjectView<BoxFinder> view(finder, frames.lines, {words, 1});
  const size_t slot = static_cast<size_t>(frame) * kSegments;
  if (recording.starts.entry_of(slot) != kNoSegment)
    draw_segments(batch, env, recording, slot, kSegments, view);
  view.finish();
}

// The number of boxes of a frame whose boxes could not be found from the runs.
constexpr int16_t kLookAgain = -1;

// Whether a step has a frame that is seen.
CULE_INLINE bool has_seen(const StepTrace& trace, uint32_t seen) {
  return trace.entries != 0 && trace.frames > seen;
}
// The number of the log of runs of a segment of such a frame, and of its boxes.
CULE_INLINE uint32_t run_log_number(size_t env, uint32_t seen, uint32_t segment) {
  return (static_cast<uint32_t>(env) * kSeenFrames + seen) * kSegments + segment;
}
CULE_INLINE uint32_t* run_log_of(const Batch& batch, uint32_t number) {
  return batch.runs + size_t{number} * kRunLogWords;
}
CULE_INLINE SegmentBoxes segment_boxes_of(const Batch& batch, uint32_t number) {
  return SegmentBoxes(batch.segment_boxes + size_t{number} * kSegmentBoxWords);
}

// On a GPU: writes down the runs of one segment of such a frame, over those of an earlier step. If
// they differ, which in most segments they do not, its boxes are to be found.
CULE_INLINE void write_runs(const Batch& batch, size_t env, const Recording& recording,
                            uint32_t seen, uint32_t segment, const LineRoom<LineBits>& room) {
  const StepTrace& trace = batch.traces[env];
  if (!has_seen(trace, seen)) return;
  const ObjectFrames frames = object_frames_of(batch, env);
  for (int word = 0; word < LineRoom<LineBits>::kSize; ++word) room.words[word * room.stride] = 0;
  using Finder = RunFinder<RunWriter>;
  const uint32_t number = run_log_number(env, seen, segment);
  Finder finder(frames.settings, RunWriter(run_log_of(batch, number)));
  ObjectView<Finder> view(finder, frames.lines, room);
  const size_t first = (trace.frames - 1u - seen) * size_t{kSegments}, slot = first + segment;
  if (recording.starts.entry_of(first) != kNoSegment &&
      recording.starts.entry_of(slot) != kNoSegment)
    draw_segments(batch, env, recording, slot, 1, view);
  view.finish();
  if (finder.sink().differs()) batch.changed_logs[take_number(batch.num_changed_logs)] = number;
}

// On a GPU: finds the boxes of the segments whose runs differ; warp `i` of `count` does it for every
// `count`th of them, from number `i` on.
template <class Lanes>
CULE_INLINE void join_runs(const Batch& batch, uint32_t i, uint32_t count, SegmentRoom& room,
                           const Lanes& lanes) {
  for (; i < *batch.num_changed_logs; i += count) {
    const uint32_t number = batch.changed_logs[i];
    const int16_t* facts = object_facts_of(batch, number / (kSeenFrames * kSegments));
    segment_boxes_of(batch, number).find(facts, run_log_of(batch, number), room, lanes);
    lanes.sync();
  }
}

// On a GPU: joins the boxes of such a frame's segments. The lanes do it together, with room for
// them. If there was too little room somewhere, the frame has to be looked at again.
template <class Lanes>
CULE_INLINE void join_segments(const Batch& batch, size_t env, uint32_t seen, FrameRoom& room,
                               const Lanes& lanes) {
  const StepTrace& trace = batch.traces[env];
  if (seen == kLastFrame) move_boxes_on(batch, env, lanes);
  if (!has_seen(trace, seen)) return;
  const FrameBoxes boxes = boxes_of_frame(batch, env, trace.frames - 1u - seen);
  SegmentJoiner<Lanes> joiner(object_facts_of(batch, env), room, lanes);
  bool complete = true;
  for (uint32_t segment = 0; segment < kSegments && complete; ++segment)
    complete = joiner.add(segment_boxes_of(batch, run_log_number(env, seen, segment)));
  complete = complete && joiner.finish(boxes);
  if (!complete && lanes.lane() == 0) boxes.count() = kLookAgain;
}
// Looks at the frame again, in one thread, if it has to.
CULE_INLINE void see_again(const Batch& batch, size_t env, const Recording& recording,
                           uint32_t seen) {
  const StepTrace& trace = batch.traces[env];
  if (!has_seen(trace, seen)) return;
  const uint32_t frame = trace.frames - 1u - seen;
  if (boxes_of_frame(batch, env, frame).count() == kLookAgain)
    see_frame(batch, env, recording, frame);
}

// Makes an env's list of objects from the boxes of its last two frames. The lanes do it together.
template <class Lanes>
CULE_INLINE void list_objects(const Batch& batch, size_t env, const Lanes& lanes) {
  int16_t* rows = objects_of(batch, env);
  for (size_t i = static_cast<size_t>(lanes.lane()); i < object_numbers(batch); i += Lanes::kCount)
    rows[i] = 0;
  lanes.sync();
  const ObjectFrames frames = object_frames_of(batch, env);
  ObjectList<Lanes> list(rows, batch.max_objects, frames.settings, frames.lines, lanes);
  list.add(frames.last(), frames.before());
  list.add_places(batch.ram + env * kRamBytes);
  if (lanes.lane() == 0) batch.objects_left_out[env] = list.left_out();
}

}  // namespace cule
