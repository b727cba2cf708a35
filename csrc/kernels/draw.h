// The TIA part of a step: draws the frames that are seen, and finds the collisions in all others.
// It works in pieces that can run in parallel.
//
// The CPU part leaves a copy of the TIA's state for every segment of kSegmentLines scanlines
// (TiaTrail). Each piece starts from such a copy. On a GPU a piece is one segment, and a thread
// does one piece. On a CPU one thread does all pieces of an env in turn, and a frame that is drawn
// is one piece (cpu/draw_frames.h).
//
// If lines of earlier frames show (ObservationPlan), a piece is the same scanlines of all frames,
// drawn in order. If all of a picture is drawn, scanlines of a piece may share rows
// (tia/render/pictures.h).
#pragma once

#include "kernels/observe/stack.h"
#include "kernels/prepare.h"
#include "tia/render/span_renderer.h"

namespace cule {

// What the CPU part of a step leaves for an env: its log of writes to the TIA, and where segments
// begin.
struct Recording {
  const uint32_t* entries;
  SegmentStarts starts;
};

// The first frame of a step that must be drawn. The observation needs the last two frames. If lines
// of earlier frames show, all are drawn.
CULE_INLINE uint32_t first_drawn_frame(const StepTrace& trace) {
  return trace.plan.earlier_frames_show || trace.frames < 2 ? 0 : trace.frames - 2u;
}

CULE_INLINE Replay replay_of(const StepTrace& trace, const uint32_t* entries) {
  return {entries, trace.entries, trace.after_clear, kFrameEnd};
}

// Draws `count` segments, the first of which is in `slot`; `at` is memory to work in. Returns the
// collisions in them that no later CXCLR clears.
template <class View>
CULE_INLINE uint32_t draw_segments(const Batch& batch, size_t env, const Recording& recording,
                                   size_t slot, int count, View& view, SegmentStart& at) {
  const TiaFormat& format = config_of(batch, env).format;
  const int segment = static_cast<int>(slot % kSegments);
  recording.starts.load(slot, at);
  // The caller adds the latches that were set before; here only new ones count.
  at.tia.collisions = 0;
  const Replay replay = replay_of(batch.traces[env], recording.entries);
  replay_segment(at, format, replay, segment_clock(format, segment),
                 end_clock(format, segment, count), view);
  return at.tia.collisions;
}
template <class View>
CULE_INLINE uint32_t draw_segments(const Batch& batch, size_t env, const Recording& recording,
                                   size_t slot, int count, View& view) {
  SegmentStart at;
  return draw_segments(batch, env, recording, slot, count, view, at);
}

// Ends a frame, for the lines of `view` from `first_line` on. If the frame was cut off, the lines
// below that place turn grey. The frame begins at entry `at`, and the log ends before entry `end`.
// Returns the first entry after the frame.
CULE_INLINE uint32_t end_frame(const TiaFormat& format, const uint32_t* entries, uint32_t at,
                               uint32_t end, SpanRenderer& view, int first_line) {
  // If the buffer became full, the last frame has no kMarkFrameEnd.
  for (bool ended = false; at < end && !ended; ++at) {
    ended = entry_register(entries[at]) == kMarkFrameEnd;
    if (entry_register(entries[at]) != kMarkGreyOut) continue;
    const int line = grey_out_line(format, entry_cycle(entries[at]));
    view.grey_out(line > first_line ? line : first_line);
  }
  return at;
}

// Draws `count` segments from `segment` on, of one frame of the step after the other. Returns the
// collisions in them that no later CXCLR clears.
CULE_COLD uint32_t draw_all_frames(const Batch& batch, size_t env, const Recording recording,
                                   int segment, int count, const LineRoom<LineBits> room) {
  const StepTrace& trace = batch.traces[env];
  const ConsoleConfig& config = config_of(batch, env);
  const uint32_t* entries = recording.entries;
  const int first_line = segment * kSegmentLines, height = static_cast<int>(config.height);
  const int end_line = segment + count < kSegments && (segment + count) * kSegmentLines < height
                           ? (segment + count) * kSegmentLines
                           : height;
  SpanRenderer view(pictures_of(batch, env), trace.plan.first_picture, end_line, room);
  const uint32_t first_pooled = first_pooled_between(batch.options, trace);
  uint32_t found = 0, at = 0;
  for (uint32_t frame = 0; frame < trace.frames; ++frame) {
    const bool begins = at < trace.entries && entry_register(entries[at]) == kMarkFrameBegin;
    if (frame > 0 && begins) view.begin_picture();
    view.objects_changed(kAllObjects);  // any may have changed since the frame before
    const size_t slot = static_cast<size_t>(frame) * kSegments + static_cast<size_t>(segment);
    if (recording.starts.entry_of(slot) != kNoSegment)
      found |= draw_segments(batch, env, recording, slot, count, view);
    at = end_frame(config.format, entries, at, trace.entries, view, first_line);
    if (frame >= first_pooled && frame + 1u < trace.frames) {
      pool_between(batch, env, trace.plan, frame == first_pooled, view.pictures[view.front],
                   static_cast<uint32_t>(first_line), static_cast<uint32_t>(end_line));
    }
  }
  return found;
}

// Finds the collisions in a segment of a frame that is not drawn, except those that are set already
// and those that a later CXCLR clears.
CULE_COLD uint32_t find_undrawn_collisions(const Batch& batch, size_t env,
                                           const Recording recording, size_t slot) {
  const StepTrace& trace = batch.traces[env];
  // If a later frame clears the latches, no collision of this one counts.
  if (recording.starts.entry_of((slot / kSegments + 1) * kSegments) <= trace.after_clear) return 0;
  const uint32_t known = latch_word(batch, env) & 0xFFFF;
  return search_segment(config_of(batch, env).format, recording.starts, slot,
                        replay_of(trace, recording.entries), kAllCollisions & ~known);
}

// What to do for a piece.
enum class Part {
  kNothing,
  kAllFrames,       // draw its scanlines of all frames, in order
  kCollisionsOnly,  // find collisions in a frame that is not drawn
  kOwnRows,         // draw segments of a frame; each scanline has its own row
  kSharedRows,      // draw segments of a frame; scanlines may share rows
};
CULE_INLINE Part part_of(const StepTrace& trace, const SegmentStarts& starts, size_t slot) {
  const uint32_t frame = static_cast<uint32_t>(slot / kSegments);
  if (trace.plan.earlier_frames_show) return frame == 0 ? Part::kAllFrames : Part::kNothing;
  if (starts.entry_of(slot) == kNoSegment) return Part::kNothing;
  if (frame < first_drawn_frame(trace)) return Part::kCollisionsOnly;
  return needs_separate_rows(trace.plan) ? Part::kOwnRows : Part::kSharedRows;
}

// The view that draws segments of the frame in which `slot` is.
template <Painting kPainting>
CULE_INLINE SpanRendererOf<kPainting> view_of(const Batch& batch, size_t env, size_t slot,
                                             const LineRoom<LineBits>& room, uint8_t* canvas) {
  const uint32_t frame = static_cast<uint32_t>(slot / kSegments);
  return {pictures_of(batch, env), picture_of_frame(batch.traces[env].plan, frame),
          static_cast<int>(config_of(batch, env).height), room, canvas};
}

CULE_COLD uint32_t draw_own_rows(const Batch& batch, size_t env, const Recording recording,
                                 size_t slot, int count, const LineRoom<LineBits> room) {
  SpanRenderer view = view_of<Painting::kOwnRows>(batch, env, slot, room, nullptr);
  return draw_segments(batch, env, recording, slot, count, view);
}

// Does one piece that is not Part::kSharedRows: `count` segments, the first of which is in `slot`,
// of one frame or of all frames. Returns the collisions in them that no later CXCLR clears; without
// drawing, only those that are not set yet. Only frames that are drawn have pieces of more than one
// segment. `room` is the thread's memory for a scanline.
CULE_INLINE uint32_t draw_rare_part(const Batch& batch, size_t env, const Recording& recording,
                                    Part part, size_t slot, int count,
                                    const LineRoom<LineBits>& room) {
  if (part == Part::kCollisionsOnly) return find_undrawn_collisions(batch, env, recording, slot);
  if (part == Part::kOwnRows) return draw_own_rows(batch, env, recording, slot, count, room);
  if (part == Part::kAllFrames) {
    return draw_all_frames(batch, env, recording, static_cast<int>(slot), count, room);
  }
  return 0;
}

// The memory in which the lanes of a warp paint scanlines, one each. Then all lanes together copy
// one painted scanline after the other to the pictures. Neighbouring lanes store neighbouring
// bytes, so one access to memory takes them all.
template <int kLanes>
struct Canvases {
  // 16 bytes more than a scanline, so that eight neighbouring lanes write to different banks.
  static constexpr uint32_t kStride = kLinePixels + sizeof(SixteenBytes);
  struct alignas(16) Painted {
    uint8_t* to;
    uint32_t lane;
  };
  alignas(16) uint8_t rows[kLanes * kStride];
  Painted painted[kLanes];

  CULE_INLINE uint8_t* of(int lane) { return rows + static_cast<uint32_t>(lane) * kStride; }

  // Copies the painted scanlines to the pictures. This lane's goes to `to`; null: it has painted
  // none.
  template <class Lanes>
  CULE_INLINE void store(uint8_t* to, const Lanes& lanes) {
    constexpr int kChunks = kLinePixels / static_cast<int>(sizeof(SixteenBytes));
    constexpr int kAtOnce = kLanes / kChunks;
    const uint32_t mask = lanes.ballot(to != nullptr), lane = static_cast<uint32_t>(lanes.lane());
    if (mask == 0) return;
    if (to) painted[count_bits(mask & ((1u << lane) - 1))] = {to, lane};
    lanes.sync();
    const int count = count_bits(mask), chunk = lanes.lane() % kChunks;
    const int first = lanes.lane() / kChunks;
#pragma unroll 2
    for (int i = first; i < count && first < kAtOnce; i += kAtOnce) {
      const Painted row = painted[i];
      reinterpret_cast<SixteenBytes*>(row.to)[chunk] =
          reinterpret_cast<const SixteenBytes*>(rows + row.lane * kStride)[chunk];
    }
    lanes.sync();
  }
};

// Does what draw_part does for one segment, in a lane of a warp. Each lane has an env of its own,
// or none: then `mine` is false. All lanes go scanline by scanline, so they paint at the same time.
// Envs that need a pooled frame are left out: another kernel draws them.
template <class Lanes>
CULE_INLINE uint32_t draw_in_warp(const Batch& batch, size_t env, bool mine,
                                  const Recording& recording, size_t slot,
                                  const LineRoom<LineBits>& room,
                                  Canvases<Lanes::kCount>& canvases, const Lanes& lanes) {
  const StepTrace& trace = batch.traces[env];
  const bool draws = mine && !needs_pooled(trace.plan);
  const Part part = draws ? part_of(trace, recording.starts, slot) : Part::kNothing;
  const int segment = static_cast<int>(slot % kSegments);
  const TiaFormat format = config_of(batch, env).format;  // a copy, which no store can change
  const int32_t begin = segment_clock(format, segment), end = end_clock(format, segment, 1);
  SegmentStart at{};
  uint32_t found = 0;  // as in draw_segments
  if (part == Part::kSharedRows) {
    recording.starts.load(slot, at);
  } else {
    at.entry = kNoSegment;  // nothing is replayed, so `found` is not cleared
    found = draw_rare_part(batch, env, recording, part, slot, 1, room);
  }
  at.tia.collisions = static_cast<uint16_t>(found);
  using View = SpanRendererOf<Painting::kOnCanvas>;
  View view = view_of<Painting::kOnCanvas>(batch, env, slot, room, canvases.of(lanes.lane()));
  SegmentReplay<View> replay{at, format, replay_of(trace, recording.entries), begin, view};
  int32_t line_end = at.tia.cursor < begin ? begin : at.tia.cursor - clocks_into_line(at.tia);
  bool going = part == Part::kSharedRows && at.tia.cursor < end;
  while (lanes.ballot(going)) {
    line_end += kClocksPerLine;
    if (going) going = replay.template go_on<true>(line_end) && at.tia.cursor < end;
    lanes.sync();
    view.flush(at.tia);
    canvases.store(view.take_painted(), lanes);
  }
  replay.latch();
  return at.tia.collisions;
}

}  // namespace cule
