// The TIA part of a step in one thread, as a CPU does it: for one env after the other.
//
// kernels/draw.h has the pieces that a step consists of. Here whole frames are drawn, scanline by
// scanline.
#pragma once

#include "kernels/draw.h"
#include "tia/render/scanline_replay.h"

namespace cule {

// Does one piece. Paints with vectors of `Pixels` (tia/render/line_painter.h).
template <class Pixels>
CULE_INLINE uint32_t draw_part(const Batch& batch, size_t env, const Recording& recording,
                               size_t slot, int count, const LineRoom<LineBits>& room) {
  const StepTrace& trace = batch.traces[env];
  const Part part = part_of(trace, recording.starts, slot);
  if (part != Part::kSharedRows) {
    return draw_rare_part(batch, env, recording, part, slot, count, room);
  }
  const uint32_t frame = static_cast<uint32_t>(slot / kSegments);
  ScanlineRenderer<LinePainter<Pixels>> view(pictures_of(batch, env),
                                             picture_of_frame(trace.plan, frame),
                                             static_cast<int>(config_of(batch, env).height));
  return draw_segments(batch, env, recording, slot, count, view);
}

// Does all pieces of a step.
template <class Pixels>
CULE_INLINE void draw_frames(const Batch& batch, size_t env, const Recording& recording) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries == 0) return;
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
    latches |= draw_part<Pixels>(batch, env, recording, slot, kSegments, room);
  }
}

}  // namespace cule
