// The objects that a step or a reset shows, if they are asked for: boxes of the last two frames
// (tia/render/object_frames.h), and what they are by the facts of the game.
//
// A GPU finds the boxes of a step's last two frames from the log of writes and the TIA's state at
// their start, as drawing does. A CPU finds them while it draws (cpu/draw_frames.h). Starts of
// episodes are seen as they are played (console/session.h), or copied from the pool. `list_objects`
// then makes an env's list.
#pragma once

#include <new>

#include "kernels/draw.h"
#include "kernels/object_boxes.h"
#include "kernels/object_list.h"

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
CULE_INLINE void move_boxes_on(const Batch& batch, size_t env) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries != 0 && trace.frames == 1) object_frames_of(batch, env).move_on();
}

// The memory in which a thread finds boxes: on a GPU the multiprocessor's own.
struct SeeingRoom {
  alignas(ObjectView) unsigned char view[sizeof(ObjectView)];
  LineBits words[LineRoom<LineBits>::kSize];
  SegmentStart at;
};

// Finds the boxes of one frame of a step.
CULE_HD inline void see_frame(const Batch& batch, size_t env, const Recording& recording,
                              uint32_t frame, SeeingRoom& room) {
  const ObjectFrames frames = object_frames_of(batch, env);
  for (LineBits& word : room.words) word = 0;
  ObjectView& view = *new (room.view) ObjectView(
      frames.settings, boxes_of_frame(batch, env, frame), frames.lines, {room.words, 1});
  const size_t slot = static_cast<size_t>(frame) * kSegments;
  if (recording.starts.entry_of(slot) == kNoSegment) return;
  draw_segments(batch, env, recording, slot, kSegments, view, room.at);
  view.finish();
}

// On a GPU: the two parts of a step, in threads of their own.
CULE_HD inline void see_frame_before(const Batch& batch, size_t env, const Recording& recording,
                                     SeeingRoom& room) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries != 0 && trace.frames > 1)
    see_frame(batch, env, recording, trace.frames - 2u, room);
}
CULE_HD inline void see_last_frame(const Batch& batch, size_t env, const Recording& recording,
                                   SeeingRoom& room) {
  move_boxes_on(batch, env);
  const StepTrace& trace = batch.traces[env];
  if (trace.entries != 0 && trace.frames > 0)
    see_frame(batch, env, recording, trace.frames - 1u, room);
}

// Makes an env's list of objects from the boxes of its last two frames. All lanes clear the rows,
// and the first fills them.
template <class Lanes>
CULE_INLINE void list_objects(const Batch& batch, size_t env, const Lanes& lanes) {
  int16_t* rows = objects_of(batch, env);
  for (size_t i = static_cast<size_t>(lanes.lane()); i < object_numbers(batch); i += Lanes::kCount)
    rows[i] = 0;
  lanes.sync();
  if (lanes.lane() != 0) return;
  const ObjectFrames frames = object_frames_of(batch, env);
  ObjectList list(rows, batch.max_objects, frames.settings, frames.lines);
  list.add(frames.last(), frames.before());
  list.add_places(batch.ram + env * kRamBytes);
  batch.objects_left_out[env] = list.left_out();
}

}  // namespace cule
