// The TIA part of a step, cut into pieces that run side by side.
//
// One thread replays an env's instruction buffer without drawing, which is cheap, and leaves a copy of the TIA's state at every
// kSegmentLines-th scanline of the two frames that show. From each copy another thread draws its scanlines. Where a frame was not
// drawn whole the first thread draws all frames itself (draw.h), as their order matters then.
#pragma once

#include "kernels/draw.h"

namespace cule {

constexpr int kSegmentLines = 15;
constexpr int kSegments = 17;  // of the tallest picture, 250 lines
constexpr int kDrawnFrames = 2;

// Where a segment begins: the state, and the next entry. `entry` is kNoSegment where there is nothing to draw.
struct SegmentStart {
  TiaState tia;
  uint32_t entry;
};
constexpr uint32_t kNoSegment = ~0u;

// Segment starts are stored by words, like records: word w of slot s of env e at words[(s * kSegmentWords + w) * num_envs + e].
constexpr size_t kSegmentWords = sizeof(SegmentStart) / 4;
constexpr size_t kSegmentSlots = kDrawnFrames * kSegments;

CULE_INLINE RecordLayout segment_layout(const Batch& batch, size_t slot) {
  const size_t n = static_cast<size_t>(batch.num_envs);
  return {batch.segments + slot * kSegmentWords * n, n, 1};
}

// The color clock at which an entry takes effect.
CULE_INLINE int32_t entry_clock(uint32_t entry) {
  const int32_t cycle = entry_cycle(entry);
  const uint32_t reg = entry_register(entry);
  return cycle * kClocksPerCycle + (reg < kMarkFrameBegin ? write_delay(reg, cycle) : 0);
}

CULE_INLINE int32_t segment_clock(const TiaFormat& format, int segment) {
  return format.first_clock + segment * kSegmentLines * kClocksPerLine;
}

// Leaves the starts of the segments whose first clock lies before `clock`, having moved the beam there.
template <class View>
CULE_HD inline void leave_starts(const Batch& batch, size_t env, const TiaFormat& format, TiaState& tia, View& view, int frame,
                                 uint32_t entry, int32_t clock, int& segment) {
  while (segment < kSegments && segment_clock(format, segment) < clock && segment_clock(format, segment) < format.last_clock) {
    draw_until(tia, format, segment_clock(format, segment), view);
    store_part(segment_layout(batch, static_cast<size_t>(frame * kSegments + segment)), env, 0, SegmentStart{tia, entry});
    ++segment;
  }
}

// The first thread's part. It latches collisions only where nobody draws; draw_segment returns the others.
CULE_HD inline void replay_segments(const Batch& batch, size_t env, const uint32_t* entries) {
  const StepTrace& trace = batch.traces[env];
  const uint32_t none = kNoSegment;
  for (size_t slot = 0; slot < kSegmentSlots; ++slot) {
    store_part(segment_layout(batch, slot), env, offsetof(SegmentStart, entry), none);
  }
  if (trace.entries == 0) return;
  if (trace.flags & kPictureBroken) return draw_frames(batch, env, entries);
  const TiaFormat& format = config_of(batch, env).format;
  TiaState tia;
  load_part(batch.records, env, offsetof(EnvRecord, tia), tia);
  const uint32_t first_drawn = first_drawn_frame(trace);
  CollisionView latches;
  uint32_t i = 0;
  for (uint32_t frame = 0; i < trace.entries; ++frame) {
    const bool drawn = frame >= first_drawn;
    int segment = 0;
    bool whole = false;
    // Line by line, so that the lanes of a warp stay together: their programs do much the same on the same line.
    for (int32_t line_end = kClocksPerLine; !whole && i < trace.entries; line_end += kClocksPerLine) {
      for (; !whole && i < trace.entries && entry_cycle(entries[i]) * kClocksPerCycle < line_end; ++i) {
        const uint32_t entry = entries[i];
        latches.wanted = drawn ? 0 : wanted_latches(trace, i);
        if (drawn && entry_register(entry) != kMarkFrameBegin) {
          leave_starts(batch, env, format, tia, latches, static_cast<int>(frame - first_drawn), i, entry_clock(entry), segment);
        }
        replay_entry(tia, format, entry, latches);
        whole = entry_register(entry) == kMarkFrameEnd;
      }
    }
  }
  store_part(batch.records, env, offsetof(EnvRecord, tia), tia);
}

// Draws one segment. Returns the collisions in it that no later CXCLR wipes out.
CULE_HD inline uint32_t draw_segment(const Batch& batch, size_t env, size_t slot, const uint32_t* entries) {
  SegmentStart start;
  load_part(segment_layout(batch, slot), env, 0, start);
  if (start.entry == kNoSegment) return 0;
  const ConsoleConfig& config = config_of(batch, env);
  const TiaFormat& format = config.format;
  const StepTrace& trace = batch.traces[env];
  const int segment = static_cast<int>(slot % kSegments);
  int32_t end = segment_clock(format, segment + 1);
  if (end > format.last_clock) end = format.last_clock;
  PictureView view{pictures_of(batch, env), batch.picture_bytes, static_cast<int>(config.height), {}};
  TiaState& tia = start.tia;
  // Latches that were set before come in with the whole; here only the new ones count.
  tia.collisions = 0;
  uint32_t i = start.entry;
  // Line by line here, too. Nothing is drawn after the frame's last entry.
  for (int32_t line_end = segment_clock(format, segment) + kClocksPerLine; tia.cursor < end; line_end += kClocksPerLine) {
    for (; i < trace.entries && entry_register(entries[i]) != kMarkFrameEnd && entry_clock(entries[i]) < line_end; ++i) {
      replay_entry(tia, format, entries[i], view);
      if (i < trace.after_clear) tia.collisions = 0;
    }
    if (i == trace.entries || entry_register(entries[i]) == kMarkFrameEnd) break;
    draw_until(tia, format, line_end, view);
    if (i < trace.after_clear) tia.collisions = 0;
  }
  return tia.collisions;
}

}  // namespace cule
