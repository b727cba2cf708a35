// The TIA part of a step, for one env by one thread: replays the instruction buffer, drawing only the frames that show.
#pragma once

#include "console/tia_follower.h"
#include "kernels/observe/observe.h"
#include "tia/picture_view.h"

namespace cule {

// The first of a step's frames that must be drawn: the last two are looked at; where lines of older ones show through, all are needed.
CULE_INLINE uint32_t first_drawn_frame(const StepTrace& trace) {
  return (trace.flags & kPictureBroken) || trace.frames < 2 ? 0 : trace.frames - 2;
}

// The collision latches that entry `index` of a frame that is not drawn matters to: none, where a later CXCLR wipes them out.
CULE_INLINE uint32_t wanted_latches(const StepTrace& trace, uint32_t index) { return index < trace.after_clear ? 0 : kAllCollisions; }

// Replays entries [begin, end) in `view`, until the end of frame number `frames`. Returns the entry after the last one replayed.
template <class View>
CULE_COLD uint32_t replay_frames(TiaState& tia, const TiaFormat& format, const uint32_t* entries, uint32_t begin,
                                      uint32_t end, uint32_t frames, View& view) {
  uint32_t i = begin;
  while (i < end && frames > 0) {
    const uint32_t entry = entries[i++];
    replay_entry(tia, format, entry, view);
    frames -= entry_register(entry) == kMarkFrameEnd;
  }
  return i;
}

// Whether the last two frames share a picture, and the observation wants the first of them: it has to be taken in between.
// The first was cut off in this step, then, so that kPictureBroken has both drawn, one after the other.
CULE_INLINE bool pools_between(uint32_t flags) { return (flags & kLastResumed) && (flags & (kPoolBoth | kPoolBackOntoOld)); }

// Where frame `frame` begins, if the follower has been there, and if all that it knows too little of, the latches, is wiped out after it.
CULE_INLINE const SegmentStart* known_start(const TiaFollower& follower, const StepTrace& trace, uint32_t frame) {
  const uint32_t passed = static_cast<uint32_t>(follower.frame) - frame;
  if (!follower.ready || !follower.frames || frame == 0 || passed >= static_cast<uint32_t>(kFrameStarts)) return nullptr;
  const SegmentStart& start = follower.frames[frame % kFrameStarts];
  return start.entry < trace.after_clear ? &start : nullptr;
}

CULE_COLD void draw_frames(const Batch& batch, size_t env, const uint32_t* entries, const TiaFollower& follower) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries == 0) return;
  const ConsoleConfig& config = config_of(batch, env);
  TiaState tia;
  load_part(batch.records, env, offsetof(EnvRecord, tia), tia);
  uint32_t skipped = first_drawn_frame(trace);
  uint32_t at = 0;
  if (const SegmentStart* start = known_start(follower, trace, skipped)) {
    const uint8_t observed = tia.observed;  // which is not the follower's to know
    tia = start->tia;
    tia.observed = observed;
    at = start->entry;
    skipped = 0;
  }
  CollisionView latches;
  while (at < trace.entries && skipped > 0) {
    const uint32_t entry = entries[at];
    latches.wanted = wanted_latches(trace, at++);
    replay_entry(tia, config.format, entry, latches);
    skipped -= entry_register(entry) == kMarkFrameEnd;
  }
  PictureView view{pictures_of(batch, env), batch.picture_bytes, static_cast<int>(config.height), {}};
  if (pools_between(trace.flags)) {
    at = replay_frames(tia, config.format, entries, at, trace.entries, trace.frames - 1, view);
    pool_before_last(batch, env, trace.flags, view.row(tia, 0), 0, ~0u);
  }
  replay_frames(tia, config.format, entries, at, trace.entries, ~0u, view);
  store_part(batch.records, env, offsetof(EnvRecord, tia), tia);
}

}  // namespace cule
