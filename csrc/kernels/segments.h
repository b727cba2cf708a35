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
constexpr uint32_t kFrameEnd = kMarkFrameEnd << kEntryRegisterShift;  // the entry, of any cycle

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
      while (!whole && i < trace.entries && entry_cycle(entries[i]) * kClocksPerCycle < line_end) {
        const uint32_t entry = entries[i];
        latches.wanted = drawn ? 0 : wanted_latches(trace, i);
        // A segment that begins before the entry takes effect begins first.
        const int32_t start = segment_clock(format, segment);
        const bool starts = drawn && entry_register(entry) != kMarkFrameBegin && segment < kSegments && start < entry_clock(entry) &&
                            start < format.last_clock;
        const Effect effect = starts ? drawing_until(start) : effect_of<CollisionView>(tia, entry);
        draw_until(tia, format, effect.clock, latches);
        if (starts) {
          const size_t slot = (frame - first_drawn) * kSegments + static_cast<size_t>(segment++);
          store_part(segment_layout(batch, slot), env, 0, SegmentStart{tia, i});
          continue;
        }
        take_effect(tia, format, effect, latches);
        whole = entry_register(entry) == kMarkFrameEnd;
        ++i;
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
  bool ended = false;
  for (int32_t line_end = segment_clock(format, segment) + kClocksPerLine; tia.cursor < end && !ended; line_end += kClocksPerLine) {
    for (bool in_line = true; in_line;) {
      const uint32_t entry = i < trace.entries ? entries[i] : kFrameEnd;
      ended = entry_register(entry) == kMarkFrameEnd;
      if (ended) break;
      in_line = entry_clock(entry) < line_end;
      const Effect effect = in_line ? effect_of<PictureView>(tia, entry) : drawing_until(line_end);
      draw_until(tia, format, effect.clock, view);
      take_effect(tia, format, effect, view);
      if (i < trace.after_clear) tia.collisions = 0;
      i += in_line;
    }
  }
  return tia.collisions;
}

}  // namespace cule
