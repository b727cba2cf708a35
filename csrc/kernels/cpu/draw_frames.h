// The TIA part of a step in one thread, as a CPU does it: for one env after the other.
//
// kernels/draw.h has the pieces that a step consists of. Here whole frames are drawn, scanline by
// scanline.
#pragma once

#include "kernels/draw.h"
#include "kernels/see.h"
#include "tia/render/scanline_replay.h"

namespace cule {

// Draws segments in which scanlines may share rows. Paints with vectors of `Pixels`
// (tia/render/line_painter.h). `finder` is told of its scanlines.
template <class Pixels, class Finder>
CULE_INLINE uint32_t draw_shared(const Batch& batch, size_t env, const Recording& recording,
                                 size_t slot, int count, Finder& finder) {
  const uint32_t frame = static_cast<uint32_t>(slot / kSegments);
  ScanlineRenderer<LinePainter<Pixels>, Finder> view(
      pictures_of(batch, env), picture_of_frame(batch.traces[env].plan, frame),
      static_cast<int>(config_of(batch, env).height), finder);
  return draw_segments(batch, env, recording, slot, count, view);
}

// Draws the frame that begins in `slot`, and finds the boxes of its objects.
template <class Pixels>
CULE_INLINE uint32_t draw_and_see(const Batch& batch, size_t env, const Recording& recording,
                                  size_t slot, const LineRoom<LineBits>& room) {
  const Part part = part_of(batch.traces[env], recording.starts, slot);
  const uint32_t frame = static_cast<uint32_t>(slot / kSegments);
  if (part != Part::kSharedRows) {
    if (is_seen(batch.traces[env], frame)) see_frame(batch, env, recording, frame);
    return draw_rare_part(batch, env, recording, part, slot, kSegments, room);
  }
  BoxFinder finder(object_frames_of(batch, env).settings, boxes_of_frame(batch, env, frame));
  const uint32_t found = draw_shared<Pixels>(batch, env, recording, slot, kSegments, finder);
  finder.finish();
  return found;
}

// Does one piece.
template <class Pixels>
CULE_INLINE uint32_t draw_part(const Batch& batch, size_t env, const Recording& recording,
                               size_t slot, int count, const LineRoom<LineBits>& room) {
  const Part part = part_of(batch.traces[env], recording.starts, slot);
  if (part != Part::kSharedRows)
    return draw_rare_part(batch, env, recording, part, slot, count, room);
  NoFinder nobody;
  return draw_shared<Pixels>(batch, env, recording, slot, count, nobody);
}

// Does all pieces of a step.
template <class Pixels>
CULE_INLINE void draw_frames(const Batch& batch, size_t env, const Recording& recording) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries == 0) return;
  if (sees(batch)) move_boxes_on(batch, env, OneLane{});
  LineBits words[LineRoom<LineBits>::kSize] = {};
  const LineRoom<LineBits> room{words, 1};
  uint32_t& latches = latch_word(batch, env);
  const size_t drawn = first_drawn_frame(trace) * kSegments,
               end = static_cast<size_t>(trace.frames) * kSegments;
  for (size_t slot = 0; slot < drawn; ++slot) {
    // Latches that are set already are not searched for.
    latches |= draw_rare_part(batch, env, recording, part_of(trace, recording.starts, slot), slot,
                              1, room);
  }
  for (size_t slot = drawn; slot < end; slot += kSegments) {
    latches |= sees(batch) ? draw_and_see<Pixels>(batch, env, recording, slot, room)
                           : draw_part<Pixels>(batch, env, recording, slot, kSegments, room);
  }
}

}  // namespace cule
