// The TIA part of a step: draws the frames that show, and finds the collisions of those that do not, in pieces that may run side by side.
//
// While the CPU part runs, it leaves a copy of the TIA's state for every segment of kSegmentLines scanlines (TiaTrail). From there each
// piece goes on by itself: on a GPU a thread has one segment, on a CPU one after the other is done, and a frame that is drawn is one
// piece. Where lines of older frames show through (kPictureBroken), a piece is those scanlines of all frames, one after the other.
// Scanlines share rows (tia/pictures.h) where all of a picture is drawn, those of a piece with each
// other.
#pragma once

#include "kernels/observe/observe.h"
#include "kernels/segment_starts.h"
#include "tia/picture_view.h"

namespace cule {

// What the CPU part of a step has left of an env.
struct Recording {
  const uint32_t* entries;
  SegmentStarts starts;
};

// Makes the state after the last frame the env's. Until then the env's is the one before the step.
CULE_INLINE void settle(const Batch& batch, size_t env, const SegmentStarts& starts) {
  const size_t end = segment_slots(batch.options);
  if (starts.entry_of(end) == kNoSegment) return;
  const uint8_t observed = *tia_byte(batch, env, offsetof(TiaState, observed));
  SegmentStart state;
  starts.load(end, state);
  state.tia.observed = observed;
  store_part(batch.records, env, offsetof(EnvRecord, tia), state.tia);
}

// Gives each scanline its own row, where those that are not drawn are to stay (kLinesLeft).
template <class Lanes>
CULE_HD inline void part_rows(const Batch& batch, size_t env, const Lanes& lanes) {
  const Pictures pictures = pictures_of(batch, env);
  const uint32_t height = config_of(batch, env).height;
  // The lanes have lines each. A row that is shared is its first line's own, so that none is written
  // that is still to be read.
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

// What has to be done before a step's frames are drawn over the pictures.
CULE_INLINE bool must_prepare(const Batch& batch, size_t env, const StepTrace& trace) {
  if (trace.entries == 0) return false;
  return (trace.flags & kLinesLeft) || draws_over_observed(batch, env, trace);
}
template <class Lanes>
CULE_HD inline void prepare(const Batch& batch, size_t env, const Lanes& lanes) {
  const StepTrace& trace = batch.traces[env];
  const bool lines_left = trace.flags & kLinesLeft;
  if (draws_over_observed(batch, env, trace)) keep_observed(batch, env, lanes);
  lanes.sync();
  if (lines_left) part_rows(batch, env, lanes);
}

// The first of a step's frames that must be drawn: the last two are looked at; where lines of older ones show through, all are needed.
CULE_INLINE uint32_t first_drawn_frame(const StepTrace& trace) {
  return (trace.flags & kPictureBroken) || trace.frames < 2 ? 0 : trace.frames - 2;
}

// Whether the last two frames share a picture, and the observation wants the first of them: it has to be taken in between.
// The first was cut off in this step, then, so that kPictureBroken has both drawn, one after the other.
CULE_INLINE bool pools_between(uint32_t flags) { return (flags & kLastResumed) && (flags & (kPoolBoth | kPoolBackOntoOld)); }

CULE_INLINE Replay replay_of(const StepTrace& trace, const uint32_t* entries) {
  return {entries, trace.entries, trace.after_clear, kFrameEnd};
}

// Draws `count` segments from the one in `slot` on. Returns the collisions in them that no later CXCLR wipes out.
CULE_INLINE uint32_t draw_segments(const Batch& batch, size_t env, const Recording& recording, size_t slot, int count, PictureView& view) {
  const TiaFormat format = config_of(batch, env).format;  // a copy: stores might change the other
  const int segment = static_cast<int>(slot % kSegments);
  SegmentStart at;
  recording.starts.load(slot, at);
  // Latches that were set before come in with the whole; here only the new ones count.
  at.tia.collisions = 0;
  const Replay replay = replay_of(batch.traces[env], recording.entries);
  replay_segment(at, format, replay, segment_clock(format, segment), end_clock(format, segment, count), count == 1, view);
  return at.tia.collisions;
}

// A frame's end, for the lines that `view` has from `first_line` on: they turn grey, as far as they lie below where the frame was cut off.
// The frame begins at entry `at` of `end`; returns the first one behind it.
CULE_INLINE uint32_t end_frame(const TiaFormat& format, const TiaState& tia, const uint32_t* entries, uint32_t at, uint32_t end,
                               PictureView& view, int first_line) {
  for (bool ended = false; at < end && !ended; ++at) {  // a buffer that was full has no last end
    ended = entry_register(entries[at]) == kMarkFrameEnd;
    if (entry_register(entries[at]) != kMarkGreyOut) continue;
    const int line = grey_out_line(format, entry_cycle(entries[at]));
    view.grey_out(tia, line > first_line ? line : first_line);
  }
  return at;
}

// Draws `count` segments from `segment` on, of all frames, one after the other. Returns the collisions in them that no later CXCLR wipes
// out.
CULE_COLD uint32_t draw_in_order(const Batch& batch, size_t env, const Recording recording,
                                 int segment, int count, const LineRoom<LineBits> room) {
  const StepTrace& trace = batch.traces[env];
  const ConsoleConfig& config = config_of(batch, env);
  const uint32_t* entries = recording.entries;
  const int first_line = segment * kSegmentLines, height = static_cast<int>(config.height);
  const int end_line = segment + count < kSegments && (segment + count) * kSegmentLines < height ? (segment + count) * kSegmentLines : height;
  PictureView view(pictures_of(batch, env), end_line, false, room);
  TiaState shown{};  // says which picture is drawn: as yet the one in front before the step
  shown.front = (*tia_byte(batch, env, offsetof(TiaState, front)) & 1) ^ ((trace.flags & kFrontTurned) != 0);
  uint32_t found = 0, at = 0;
  for (uint32_t frame = 0; frame < trace.frames; ++frame) {
    if (frame + 1 == trace.frames && pools_between(trace.flags)) {
      pool_before_last(batch, env, trace.flags, view.pictures[shown.front],
                       static_cast<uint32_t>(first_line), static_cast<uint32_t>(end_line));
    }
    view.objects_changed(kAllObjects);  // from whatever they were in the frame before
    const size_t slot = static_cast<size_t>(frame) * kSegments + static_cast<size_t>(segment);
    if (recording.starts.entry_of(slot) != kNoSegment) found |= draw_segments(batch, env, recording, slot, count, view);
    shown.front ^= at < trace.entries && entry_register(entries[at]) == kMarkFrameBegin;
    at = end_frame(config.format, shown, entries, at, trace.entries, view, first_line);
  }
  return found;
}

// The collisions in a segment of a frame that is not drawn, as far as they are not known and no later CXCLR wipes them out.
CULE_COLD uint32_t find_unseen(const Batch& batch, size_t env, const Recording recording,
                               size_t slot) {
  const StepTrace& trace = batch.traces[env];
  // Nothing of a frame counts where the latches are cleared in a later one.
  if (recording.starts.entry_of((slot / kSegments + 1) * kSegments) <= trace.after_clear) return 0;
  uint16_t known;
  memcpy(&known, tia_byte(batch, env, offsetof(TiaState, collisions)), sizeof known);
  SegmentSearch search;
  return search.search(config_of(batch, env).format, recording.starts, slot, replay_of(trace, recording.entries), kAllCollisions & ~known);
}

// One piece: `count` segments of a frame from the one in `slot` on, or, where their order matters, of all frames. Returns the collisions in
// them that are not known so far and that no later CXCLR wipes out. Only frames that are drawn are in pieces of more than one segment.
// `room` is the thread's for a scanline.
CULE_INLINE uint32_t draw_part(const Batch& batch, size_t env, const Recording& recording,
                               size_t slot, int count, const LineRoom<LineBits>& room) {
  const StepTrace& trace = batch.traces[env];
  const uint32_t frame = static_cast<uint32_t>(slot / kSegments);
  if (trace.flags & kPictureBroken) {
    if (frame != 0) return 0;
    return draw_in_order(batch, env, recording, static_cast<int>(slot), count, room);
  }
  if (recording.starts.entry_of(slot) == kNoSegment) return 0;
  if (frame < first_drawn_frame(trace)) return find_unseen(batch, env, recording, slot);
  PictureView view(pictures_of(batch, env), static_cast<int>(config_of(batch, env).height),
                   !(trace.flags & kLinesLeft), room);
  return draw_segments(batch, env, recording, slot, count, view);
}

// All pieces of a step, by one thread.
CULE_HD inline void draw_frames(const Batch& batch, size_t env, const Recording& recording) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries == 0) return;
  LineBits words[LineRoom<LineBits>::kSize] = {};
  const LineRoom<LineBits> room{words, 1};
  constexpr size_t kCollisions = offsetof(EnvRecord, tia) + offsetof(TiaState, collisions);
  uint32_t latches;  // and the two bytes behind them
  load_part(batch.records, env, kCollisions, latches);
  const size_t drawn = first_drawn_frame(trace) * kSegments, end = static_cast<size_t>(trace.frames) * kSegments;
  for (size_t slot = 0; slot < drawn; ++slot) {
    latches |= draw_part(batch, env, recording, slot, 1, room);
    store_part(batch.records, env, kCollisions, latches);  // what is known need not be looked for
  }
  for (size_t slot = drawn; slot < end; slot += kSegments) {
    latches |= draw_part(batch, env, recording, slot, kSegments, room);
  }
  store_part(batch.records, env, kCollisions, latches);
}

}  // namespace cule
