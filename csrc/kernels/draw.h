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

// Whether no scanlines share a row after a step: some are not drawn, or what is drawn is pooled.
CULE_INLINE bool parts_rows(const StepTrace& trace) {
  return (trace.flags & kLinesLeft) || needs_pooled(trace.flags);
}

// What has to be done before a step's frames are drawn over the pictures.
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
template <class View>
CULE_INLINE uint32_t draw_segments(const Batch& batch, size_t env, const Recording& recording,
                                   size_t slot, int count, View& view) {
  const TiaFormat& format = config_of(batch, env).format;
  const int segment = static_cast<int>(slot % kSegments);
  SegmentStart at;
  recording.starts.load(slot, at);
  // Latches that were set before come in with the whole; here only the new ones count.
  at.tia.collisions = 0;
  const Replay replay = replay_of(batch.traces[env], recording.entries);
  replay_segment(at, format, replay, segment_clock(format, segment),
                 end_clock(format, segment, count), view);
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
  PictureView view(pictures_of(batch, env), end_line, room);
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
  return search_segment(config_of(batch, env).format, recording.starts, slot,
                        replay_of(trace, recording.entries), kAllCollisions & ~known);
}

// What there is to do about a piece: nothing; to draw those scanlines of all frames; to find
// collisions in a frame that is not drawn; or to draw segments of one that is, of which each
// scanline has its own row, or may share one.
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

// One piece, but for Part::kSharedRows: `count` segments of a frame from the one in `slot` on, or,
// where their order matters, of all frames. Returns the collisions in them that are not known so
// far and that no later CXCLR wipes out. Only frames that are drawn are in pieces of more than one
// segment. `room` is the thread's for a scanline.
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

// One piece, by one thread.
CULE_INLINE uint32_t draw_part(const Batch& batch, size_t env, const Recording& recording,
                               size_t slot, int count, const LineRoom<LineBits>& room) {
  const Part part = part_of(batch.traces[env], recording.starts, slot);
  if (part != Part::kSharedRows) {
    return draw_rare_part(batch, env, recording, part, slot, count, room);
  }
  return draw_at_once<Painting::kSharedRows>(batch, env, recording, slot, count, room);
}

// Where the lanes of a warp paint scanlines, one each. All of them write down what each has
// painted: memory takes neighbouring bytes from neighbouring lanes at once.
template <int kLanes>
struct Canvases {
  // Sixteen bytes more than a scanline has, so that eight lanes' are in banks of their own.
  static constexpr uint32_t kStride = kLinePixels + sizeof(SixteenBytes);
  struct alignas(16) Painted {
    uint8_t* to;
    uint32_t lane;
  };
  alignas(16) uint8_t rows[kLanes * kStride];
  Painted painted[kLanes];

  CULE_INLINE uint8_t* of(int lane) { return rows + static_cast<uint32_t>(lane) * kStride; }

  // Writes down what the lanes have painted, this one to `to`, if that is not null.
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

// draw_part of one segment, by a lane of a warp whose lanes have that of an env each, scanline by
// scanline, so that they paint at the same time. Not all lanes have an env (`mine`), and those whose
// frames are pooled are left to others.
template <class Lanes>
CULE_INLINE uint32_t draw_beside(const Batch& batch, size_t env, bool mine,
                                 const Recording& recording, size_t slot,
                                 const LineRoom<LineBits>& room, Canvases<Lanes::kCount>& canvases,
                                 const Lanes& lanes) {
  const StepTrace& trace = batch.traces[env];
  const bool draws = mine && !needs_pooled(trace.flags);
  const Part part = draws ? part_of(trace, recording.starts, slot) : Part::kNothing;
  const int segment = static_cast<int>(slot % kSegments);
  const TiaFormat format = config_of(batch, env).format;  // a copy: no store changes that
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
