// The TIA part of a step on a GPU, cut into pieces that run side by side.
//
// While the CPU part runs, its TiaFollower leaves a copy of the TIA's state at every kSegmentLines-th scanline. From each copy another
// thread draws its scanlines, of the two frames that show; of those before it finds the collisions. Where lines of older
// frames show through (kPictureBroken), a thread draws its scanlines of all frames, one after the other.
#pragma once

#include "kernels/draw.h"
#include "kernels/segment_starts.h"

namespace cule {

constexpr uint32_t kFrameEnd = kMarkFrameEnd << kEntryRegisterShift;  // the entry, of any cycle

// Makes the state after the last frame the env's. Until then the env's is the one before the step.
CULE_INLINE void settle(const Batch& batch, size_t env) {
  const size_t end = segment_slots(batch.options);
  if (next_entry_of(batch, env, end) == kNoSegment) return;
  const uint8_t observed = *tia_byte(batch, env, offsetof(TiaState, observed));
  TiaState tia;
  load_part(segment_starts(batch), env, end * sizeof(SegmentStart), tia);
  tia.observed = observed;
  store_part(batch.records, env, offsetof(EnvRecord, tia), tia);
}

// Goes through one segment in `view`. Returns the collisions in it that no later CXCLR wipes out.
template <class View>
CULE_INLINE uint32_t replay_segment(const Batch& batch, size_t env, size_t slot, const uint32_t* entries, View& view) {
  SegmentStart start;
  load_part(segment_starts(batch), env, slot * sizeof(SegmentStart), start);
  const StepTrace& trace = batch.traces[env];
  const TiaFormat& format = config_of(batch, env).format;
  const int segment = static_cast<int>(slot % kSegments);
  int32_t end = segment_clock(format, segment + 1);
  if (end > format.last_clock) end = format.last_clock;
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
      const Effect effect = in_line ? effect_of<View>(tia, entry) : drawing_until(line_end);
      draw_until(tia, format, effect.clock, view);
      take_effect(tia, format, effect, view);
      if (i < trace.after_clear) tia.collisions = 0;
      i += in_line;
    }
  }
  return tia.collisions;
}

// A frame's end, for the lines that `view` has from `first_line` on: they turn grey, as far as they lie below where the frame was cut off.
// The frame begins at entry `at` of `end`; returns the first one behind it.
CULE_INLINE uint32_t end_lines(const TiaFormat& format, const TiaState& tia, const uint32_t* entries, uint32_t at, uint32_t end,
                               PictureView& view, int first_line) {
  for (bool ended = false; at < end && !ended; ++at) {  // a buffer that was full has no last end
    ended = entry_register(entries[at]) == kMarkFrameEnd;
    if (entry_register(entries[at]) != kMarkGreyOut) continue;
    const int line = grey_out_line(format, entry_cycle(entries[at]));
    view.grey_out(tia, line > first_line ? line : first_line);
  }
  return at;
}

// Draws a segment of all frames, one after the other. Returns the collisions in it that no later CXCLR wipes out.
CULE_COLD uint32_t draw_in_order(const Batch& batch, size_t env, int segment, const uint32_t* entries) {
  const StepTrace& trace = batch.traces[env];
  const ConsoleConfig& config = config_of(batch, env);
  const int first_line = segment * kSegmentLines, end_line = first_line + kSegmentLines, height = static_cast<int>(config.height);
  PictureView view{pictures_of(batch, env), batch.picture_bytes, end_line < height ? end_line : height, {}};
  TiaState shown{};  // says which picture is drawn: as yet the one in front before the step
  shown.front = (*tia_byte(batch, env, offsetof(TiaState, front)) & 1) ^ ((trace.flags & kFrontTurned) != 0);
  uint32_t found = 0, at = 0;
  for (uint32_t frame = 0; frame < trace.frames; ++frame) {
    if (frame + 1 == trace.frames && pools_between(trace.flags)) {
      pool_before_last(batch, env, trace.flags, view.row(shown, 0), static_cast<uint32_t>(first_line), static_cast<uint32_t>(end_line));
    }
    view.objects_changed(kAllObjects);  // from whatever they were in the frame before
    const size_t slot = static_cast<size_t>(frame) * kSegments + static_cast<size_t>(segment);
    if (next_entry_of(batch, env, slot) != kNoSegment) found |= replay_segment(batch, env, slot, entries, view);
    shown.front ^= at < trace.entries && entry_register(entries[at]) == kMarkFrameBegin;
    at = end_lines(config.format, shown, entries, at, trace.entries, view, first_line);
  }
  return found;
}

// One thread's share: a segment, of one frame or, where their order matters, of all. Returns the collisions in it that are not known so
// far and that no later CXCLR wipes out.
CULE_HD inline uint32_t draw_segment(const Batch& batch, size_t env, size_t slot, const uint32_t* entries) {
  const StepTrace& trace = batch.traces[env];
  const uint32_t frame = static_cast<uint32_t>(slot / kSegments);
  if (trace.flags & kPictureBroken) return frame == 0 ? draw_in_order(batch, env, static_cast<int>(slot), entries) : 0;
  if (next_entry_of(batch, env, slot) == kNoSegment) return 0;
  if (frame >= first_drawn_frame(trace)) {
    const ConsoleConfig& config = config_of(batch, env);
    PictureView view{pictures_of(batch, env), batch.picture_bytes, static_cast<int>(config.height), {}};
    return replay_segment(batch, env, slot, entries, view);
  }
  // Nothing of a frame counts where the latches are cleared in a later one.
  if (next_entry_of(batch, env, (frame + 1) * kSegments) <= trace.after_clear) return 0;
  CollisionView latches;
  latches.wanted = kAllCollisions & ~trace.latches_read;
  return replay_segment(batch, env, slot, entries, latches);
}

}  // namespace cule
