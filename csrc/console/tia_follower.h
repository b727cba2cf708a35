// The TIA's side of a frame while it runs: the instruction buffer that the processor fills, and what follows it close behind.
#pragma once

#include "console/record.h"
#include "tia/collision_view.h"
#include "tia/segment.h"

namespace cule {

// The env's TIA instruction buffer for one step.
struct InstructionBuffer {
  uint32_t* entries;
  uint32_t capacity;
  uint32_t count;
  uint32_t after_clear;  // the entry after the last CXCLR: what came before it no longer shows in the latches
};

constexpr int kFrameStarts = 4;  // where so many of the newest frames begin is kept on the CPU: the last two of a step are drawn

// The TIA's state, following the instruction buffer while frames run: for the collision latches that are read, and for where drawing
// begins: on a GPU the segments of pictures, on the CPU the frames that are drawn.
struct TiaFollower {
  TiaState tia;
  CollisionView view;
  uint32_t replayed;
  uint32_t wanted;  // the latches that it has looked for
  int frame, segment;  // the frame that it is in, of those in the buffer, and the next segment to begin
  bool ready = false;
  // Takes the state where segment s of frame f begins at slot f * kSegments + s, as an env's SegmentStart; null words: it is not kept.
  RecordLayout starts = {};
  SegmentStart* frames = nullptr;  // takes where frame f begins at f % kFrameStarts; null: it is not kept
  uint8_t held[kHeldValues];  // room for what `Ram` holds of the TIA's registers, where that is nowhere else
};

// Takes the follower to the last entry of the buffer, and then to `mark`, which is 0 or an entry that only moves the beam. Returns the
// collision latches: those that are `wanted`. `records` holds the TIA's state where the buffer begins.
CULE_COLD uint32_t follow_entries(TiaFollower& follower, const TiaFormat& format, RecordLayout records, size_t env,
                                  const InstructionBuffer buffer, uint32_t wanted, uint32_t mark) {
  const int first_segment = follower.starts.words ? 0 : kSegments;
  if (!follower.ready || (wanted & ~follower.wanted)) {  // it has not looked for them so far
    load_part(records, env, offsetof(EnvRecord, tia), follower.tia);
    follower.view.objects_changed(kAllObjects);
    follower.replayed = 0;
    follower.frame = 0;
    follower.segment = first_segment;
    follower.ready = true;
  }
  follower.wanted = wanted;
  TiaState tia = follower.tia;  // at hand, while it changes
  // Each entry is fetched while the one before it takes effect. Behind the last one stands the mark.
  const auto entry_at = [&](uint32_t index) { return index < buffer.count ? buffer.entries[index] : mark; };
  uint32_t entry = entry_at(follower.replayed), following = entry_at(follower.replayed + 1);
#pragma unroll 1
  for (bool marked = false; !marked;) {
    const bool at_end = follower.replayed == buffer.count;
    if (at_end && !mark) break;
    // Collisions before a CXCLR are of no interest any more.
    follower.view.wanted = follower.replayed < buffer.after_clear ? 0 : wanted;
    const bool begins = begins_before(format, follower.segment, entry);
    const Effect effect = begins ? drawing_until(segment_clock(format, follower.segment)) : effect_of<CollisionView>(tia, entry);
    draw_until(tia, format, effect.clock, follower.view);
    if (begins) {
      const size_t slot = static_cast<size_t>(follower.frame * kSegments + follower.segment++);
      store_part(follower.starts, env, slot * sizeof(SegmentStart), SegmentStart{tia, follower.replayed});
      continue;
    }
    take_effect(tia, format, effect, follower.view);
    if (entry_register(entry) == kMarkFrameEnd) {
      ++follower.frame;
      follower.segment = first_segment;
      if (follower.frames) follower.frames[follower.frame % kFrameStarts] = {tia, follower.replayed + 1};
    }
    marked = at_end;
    follower.replayed += !at_end;
    entry = following;
    following = entry_at(follower.replayed + 1);
  }
  follower.tia = tia;
  return tia.collisions;
}

}  // namespace cule
