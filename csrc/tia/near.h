// Whether two objects can have met in a segment, without drawing it: in most segments none that matter are anywhere near each other.
//
// Of each object it gathers the blocks of 8 pixels that it has been in while it was on and the beam, too. Only where the blocks of two
// objects have one in common may they have met, in the same line or not. Where the beam is does not matter to that, so that the entries
// are taken one after the other, a few instructions each.
#pragma once

#include "tia/collision_view.h"
#include "tia/segment.h"

namespace cule {

struct Whereabouts {
  uint32_t blocks[kNumTiaObjects] = {};  // that each movable object has been in
  uint32_t gathered = 0;                 // the objects of which `blocks` has where they are now
  uint32_t changed = kAllObjects;        // those that have changed and may be elsewhere
  uint32_t playfield = 0;                // all that it has shown on its left half
  bool repeated = false, mirrored = false;  // what may have been on its right half
  bool stars = false;                    // missile 0 has moved by itself

  CULE_INLINE void objects_changed(uint32_t objects, bool moved) {
    if (moved) gathered &= ~objects;
    changed |= objects & ~gathered;
  }

  // What `tia` shows is shown, as far as `objects` are concerned.
  CULE_INLINE void gather(const TiaState& tia, uint32_t objects) {
    stars |= has_stars(tia);
    uint32_t left = changed & objects;
    if (left == 0) return;
    changed &= ~left;
    if (left & 1u << kPlayfield) {
      playfield |= tia.playfield;
      mirrored |= tia.reflect_now | (tia.ctrlpf & 1);
      repeated |= !(tia.reflect_now & tia.ctrlpf & 1);
    }
    left &= objects_on(tia) & kMovableObjects;
    gathered |= left;
#pragma unroll 1
    for (; left; left &= left - 1) {
      const uint32_t object = lowest_object(left);
      Extent extent = extent_of(tia, object);
      extent.skip_first = false;  // which the beam changes
      blocks[object] |= movable_blocks(extent);
    }
  }

  // Whether one of `latches` may have been set.
  CULE_INLINE bool may_set(uint32_t latches) {
    blocks[kPlayfield] = playfield_blocks(playfield, repeated, mirrored);
    return stars || common_blocks(blocks, latches) != 0;
  }
};

// Notes which objects change.
struct ChangesView {
  uint32_t changed = 0;
  CULE_INLINE void objects_changed(uint32_t objects) { changed |= objects; }
};

// Goes on from `at`, as replay_segment does, gathering where `objects` are.
CULE_INLINE void look_around(SegmentStart& at, const TiaFormat& format, const Replay& replay, int32_t begin, int32_t end, uint32_t objects,
                             Whereabouts& found) {
  TiaState& tia = at.tia;
#pragma unroll 1
  for (;; ++at.entry) {
    const uint32_t entry = at.entry < replay.count ? replay.entries[at.entry] : kFrameEnd;
    const uint32_t reg = entry_register(entry);
    const int32_t cycle = entry_cycle(entry), clock = cycle * kClocksPerCycle;
    const bool over = ends_drawing(entry) || clock >= end;
    // What the entries so far have left is shown from `begin` on, until this one takes effect.
    const bool shown = (over || clock + kLongestDelay > begin) && at.entry >= replay.after_clear && !(tia.vblank & 2);
    if (shown) found.gather(tia, objects);
    if (over) return;
    ChangesView view;
    const uint32_t value = entry_value(entry);
    write_register(tia, format, AnyRegister{reg}, value, cycle, ResetPhase::kIdle, view);
    found.objects_changed(view.changed, changes_places(reg));
  }
}

}  // namespace cule
