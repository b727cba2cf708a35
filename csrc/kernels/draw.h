// The TIA part of a step: draws the frames that show, and finds the collisions of those that do
// not. It works in pieces that can run in parallel.
//
// While the CPU part runs, it leaves a copy of the TIA's state for every segment of kSegmentLines
// scanlines (TiaTrail). Each piece starts from such a copy. On a GPU a thread has one segment. On a
// CPU the pieces are done one after the other, and a frame that is drawn is one piece. If lines of
// older frames show through (kPictureBroken), a piece is the same scanlines of all frames, one
// after the other. If all of a picture is drawn, the scanlines of a piece may share rows
// (tia/pictures.h).
#pragma once

#include "kernels/observe/observe.h"
#include "kernels/segment_starts.h"
#include "tia/picture_view.h"

namespace cule {

// What the CPU part of a step has left for an env.
struct Recording {
  const uint32_t* entries;
  SegmentStarts starts;
};

// Stores the TIA's state after the last frame in the env's record, which until then has the state
// before the step.
CULE_INLINE void settle(const Batch& batch, size_t env, const SegmentStarts& starts) {
  const size_t end = segment_slots(batch.options);
  if (starts.entry_of(end) == kNoSegment) return;
  const uint8_t observed = *tia_byte(batch, env, offsetof(TiaState, observed));
  SegmentStart state;
  starts.load(end, state);
  state.tia.observed = observed;
  store_part(batch.records, env, offsetof(EnvRecord, tia), state.tia);
}

// Gives each scanline its own row, so that those that are not drawn stay as they are (kLinesLeft).
template <class Lanes>
CULE_HD inline void part_rows(const Batch& batch, size_t env, const Lanes& lanes) {
  const Pictures pictures = pictures_of(batch, env);
  const uint32_t height = config_of(batch, env).height;
  // Each lane has lines of its own. A shared row is the own row of the first line that shows it, so
  // no row is overwritten that is still to be read.
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

// Whether a step leaves no scanlines that share a row: some are not drawn, or the frame is pooled.
CULE_INLINE bool parts_rows(const StepTrace& trace) {
  return (trace.flags & kLinesLeft) || needs_pooled(trace.flags);
}

// Whether a step's frames need something done before they are drawn over the pictures, and that.
CULE_INLINE bool must_prepare(const Batch& batch, size_t env, const StepTrace& trace) {
  if (trace.entries == 0) return false;
  return parts_rows(trace) || draws_over_observed(batch, env, trace);
}
template <class Lanes>
CULE_HD inline void prepare(const Batch& batch, size_t env, const Lanes& lanes) {
  const StepTrace& trace = batch.traces[env];
  if (lacks_observed(batch, env, trace)) blacken_pooled(batch, env, lanes);
  const bool draws_over = draws_over_observed(batch, env, trace);
  lanes.sync();
  if (draws_over) keep_observed(batch, env, lanes);
  lanes.sync();
  if (parts_rows(trace)) part_rows(batch, env, lanes);
}

// The first of a step's frames that must be drawn. The observation needs the last two; if lines of
// older ones show through, all are drawn.
CULE_INLINE uint32_t first_drawn_frame(const StepTrace& trace) {
  return (trace.flags & kPictureBroken) || trace.frames < 2 ? 0 : trace.frames - 2;
}

// Whether the last two frames share a picture and the observation needs the first of them, which
// has to be pooled before the second is drawn. The first was then cut off in this step, so that
// kPictureBroken is set, and both are drawn, one after the other.
CULE_INLINE bool pools_between(uint32_t flags) {
  return (flags & kLastResumed) && (flags & (kPoolBoth | kPoolBackOntoOld));
}

CULE_INLINE Replay replay_of(const StepTrace& trace, const uint32_t* entries) {
  return {entries, trace.entries, trace.after_clear, kFrameEnd};
}

// Draws `count` segments from the one in `slot` on. Returns the collisions in them that no later
// CXCLR clears.
template <class View>
CULE_INLINE uint32_t draw_segments(const Batch& batch, size_t env, const Recording& recording,
                                   size_t slot, int count, View& view) {
  const TiaFormat& format = config_of(batch, env).format;
  const int segment = static_cast<int>(slot % kSegments);
  SegmentStart at;
  recording.starts.load(slot, at);
  // The caller adds the latches that were set before; here only new ones count.
  at.tia.collisions = 0;
  const Replay replay = replay_of(batch.traces[env], recording.entries);
  replay_segment(at, format, replay, segment_clock(format, segment),
                 end_clock(format, segment, count), view);
  return at.tia.collisions;
}

// Ends a frame, for the lines of `view` from `first_line` on: those below the place where the frame
// was cut off turn grey. The frame begins at entry `at` of `end`. Returns the first entry after it.
CULE_INLINE uint32_t end_frame(const TiaFormat& format, const TiaState& tia,
                               const uint32_t* entries, uint32_t at, uint32_t end,
                               PictureView& view, int first_line) {
  // If the buffer was full, the last frame has no end in it.
  for (bool ended = false; at < end && !ended; ++at) {
    ended = entry_register(entries[at]) == kMarkFrameEnd;
    if (entry_register(entries[at]) != kMarkGreyOut) continue;
    const int line = grey_out_line(format, entry_cycle(entries[at]));
    view.grey_out(tia, line > first_line ? line : first_line);
  }
  return at;
}

// Draws `count` segments from `segment` on, of all frames, one after the other. Returns the
// collisions in them that no later CXCLR clears.
CULE_COLD uint32_t draw_in_order(const Batch& batch, size_t env, const Recording recording,
                                 int segment, int count, const LineRoom<LineBits> room) {
  const StepTrace& trace = batch.traces[env];
  const ConsoleConfig& config = config_of(batch, env);
  const uint32_t* entries = recording.entries;
  const int first_line = segment * kSegmentLines, height = static_cast<int>(config.height);
  const int end_line = segment + count < kSegments && (segment + count) * kSegmentLines < height
                           ? (segment + count) * kSegmentLines
                           : height;
  PictureView view(pictures_of(batch, env), end_line, room);
  TiaState shown{};  // says which picture is drawn; at first, the one in front before the step
  shown.front = (*tia_byte(batch, env, offsetof(TiaState, front)) & 1) ^
                ((trace.flags & kFrontTurned) != 0);
  uint32_t found = 0, at = 0;
  for (uint32_t frame = 0; frame < trace.frames; ++frame) {
    if (frame + 1 == trace.frames && pools_between(trace.flags)) {
      pool_before_last(batch, env, trace.flags, view.pictures[shown.front],
                       static_cast<uint32_t>(first_line), static_cast<uint32_t>(end_line));
    }
    view.objects_changed(kAllObjects);  // since the frame before
    const size_t slot = static_cast<size_t>(frame) * kSegments + static_cast<size_t>(segment);
    if (recording.starts.entry_of(slot) != kNoSegment)
      found |= draw_segments(batch, env, recording, slot, count, view);
    shown.front ^= at < trace.entries && entry_register(entries[at]) == kMarkFrameBegin;
    at = end_frame(config.format, shown, entries, at, trace.entries, view, first_line);
  }
  return found;
}

// The collisions in a segment of a frame that is not drawn, except those that are known and those
// that a later CXCLR clears.
CULE_COLD uint32_t find_unseen(const Batch& batch, size_t env, const Recording recording,
                               size_t slot) {
  const StepTrace& trace = batch.traces[env];
  // If the latches are cleared in a later frame, nothing of this one counts.
  if (recording.starts.entry_of((slot / kSegments + 1) * kSegments) <= trace.after_clear) return 0;
  uint16_t known;
  memcpy(&known, tia_byte(batch, env, offsetof(TiaState, collisions)), sizeof known);
  return search_segment(config_of(batch, env).format, recording.starts, slot,
                        replay_of(trace, recording.entries), kAllCollisions & ~known);
}

// What to do for a piece: nothing; draw its scanlines of all frames, in order; find collisions in a
// frame that is not drawn; or draw segments of a frame, where each scanline has its own row, or may
// share one.
enum class Part { kNothing, kInOrder, kUnseen, kOwnRows, kSharedRows };
CULE_INLINE Part part_of(const StepTrace& trace, const SegmentStarts& starts, size_t slot) {
  const uint32_t frame = static_cast<uint32_t>(slot / kSegments);
  if (trace.flags & kPictureBroken) return frame == 0 ? Part::kInOrder : Part::kNothing;
  if (starts.entry_of(slot) == kNoSegment) return Part::kNothing;
  if (frame < first_drawn_frame(trace)) return Part::kUnseen;
  return parts_rows(trace) ? Part::kOwnRows : Part::kSharedRows;
}

template <Painting kPainting>
CULE_INLINE PictureViewOf<kPainting> view_of(const Batch& batch, size_t env,
                                             const LineRoom<LineBits>& room, uint8_t* canvas) {
  const int height = static_cast<int>(config_of(batch, env).height);
  return {pictures_of(batch, env), height, room, canvas};
}

template <Painting kPainting>
CULE_HD inline uint32_t draw_at_once(const Batch& batch, size_t env, const Recording& recording,
                                     size_t slot, int count, const LineRoom<LineBits>& room) {
  PictureViewOf<kPainting> view = view_of<kPainting>(batch, env, room, nullptr);
  return draw_segments(batch, env, recording, slot, count, view);
}
CULE_COLD uint32_t draw_own_rows(const Batch& batch, size_t env, const Recording recording,
                                 size_t slot, int count, const LineRoom<LineBits> room) {
  return draw_at_once<Painting::kOwnRows>(batch, env, recording, slot, count, room);
}

// Does one piece, except for Part::kSharedRows: `count` segments from the one in `slot` on, of one
// frame, or of all frames if their order matters. Returns the collisions in them that are not known
// yet and that no later CXCLR clears. Only frames that are drawn are in pieces of more than one
// segment. `room` is the thread's memory for a scanline.
CULE_INLINE uint32_t draw_rare_part(const Batch& batch, size_t env, const Recording& recording,
                                    Part part, size_t slot, int count,
                                    const LineRoom<LineBits>& room) {
  if (part == Part::kUnseen) return find_unseen(batch, env, recording, slot);
  if (part == Part::kOwnRows) return draw_own_rows(batch, env, recording, slot, count, room);
  if (part == Part::kInOrder) {
    return draw_in_order(batch, env, recording, static_cast<int>(slot), count, room);
  }
  return 0;
}

// Does one piece, by one thread.
CULE_INLINE uint32_t draw_part(const Batch& batch, size_t env, const Recording& recording,
                               size_t slot, int count, const LineRoom<LineBits>& room) {
  const Part part = part_of(batch.traces[env], recording.starts, slot);
  if (part != Part::kSharedRows) {
    return draw_rare_part(batch, env, recording, part, slot, count, room);
  }
  return draw_at_once<Painting::kSharedRows>(batch, env, recording, slot, count, room);
}

// Where the lanes of a warp paint scanlines, one each. Together they then copy each painted
// scanline to the pictures, since memory takes neighbouring bytes from neighbouring lanes at once.
template <int kLanes>
struct Canvases {
  // Sixteen bytes more than a scanline has, so that eight lanes write to different banks.
  static constexpr uint32_t kStride = kLinePixels + sizeof(SixteenBytes);
  struct alignas(16) Painted {
    uint8_t* to;
    uint32_t lane;
  };
  alignas(16) uint8_t rows[kLanes * kStride];
  Painted painted[kLanes];

  CULE_INLINE uint8_t* of(int lane) { return rows + static_cast<uint32_t>(lane) * kStride; }

  // Copies what the lanes have painted to the pictures. That of this lane goes to `to`, if that is
  // not null.
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

// draw_part for one segment, by a lane of a warp. Each lane has an env of its own, and all go
// scanline by scanline, so that they paint at the same time. A lane may have no env (`mine` is
// false). Envs whose frames are pooled are drawn elsewhere.
template <class Lanes>
CULE_INLINE uint32_t draw_beside(const Batch& batch, size_t env, bool mine,
                                 const Recording& recording, size_t slot,
                                 const LineRoom<LineBits>& room, Canvases<Lanes::kCount>& canvases,
                                 const Lanes& lanes) {
  const StepTrace& trace = batch.traces[env];
  const bool draws = mine && !needs_pooled(trace.flags);
  const Part part = draws ? part_of(trace, recording.starts, slot) : Part::kNothing;
  const int segment = static_cast<int>(slot % kSegments);
  const TiaFormat format = config_of(batch, env).format;  // a copy, which no store can change
  const int32_t begin = segment_clock(format, segment), end = end_clock(format, segment, 1);
  SegmentStart at{};
  uint32_t found = 0;  // as in draw_segments
  if (part == Part::kSharedRows) {
    recording.starts.load(slot, at);
  } else {
    at.entry = kNoSegment;  // nothing is replayed, and nothing that was found is cleared
    found = draw_rare_part(batch, env, recording, part, slot, 1, room);
  }
  at.tia.collisions = static_cast<uint16_t>(found);
  using View = PictureViewOf<Painting::kOnCanvas>;
  View view = view_of<Painting::kOnCanvas>(batch, env, room, canvases.of(lanes.lane()));
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

// Does all pieces of a step, by one thread.
CULE_HD inline void draw_frames(const Batch& batch, size_t env, const Recording& recording) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries == 0) return;
  LineBits words[LineRoom<LineBits>::kSize] = {};
  const LineRoom<LineBits> room{words, 1};
  constexpr size_t kCollisions = offsetof(EnvRecord, tia) + offsetof(TiaState, collisions);
  uint32_t latches;  // and the two bytes after them
  load_part(batch.records, env, kCollisions, latches);
  const size_t drawn = first_drawn_frame(trace) * kSegments,
               end = static_cast<size_t>(trace.frames) * kSegments;
  for (size_t slot = 0; slot < drawn; ++slot) {
    latches |= draw_part(batch, env, recording, slot, 1, room);
    store_part(batch.records, env, kCollisions, latches);  // known ones are not searched for
  }
  for (size_t slot = drawn; slot < end; slot += kSegments) {
    latches |= draw_part(batch, env, recording, slot, kSegments, room);
  }
  store_part(batch.records, env, kCollisions, latches);
}

}  // namespace cule
