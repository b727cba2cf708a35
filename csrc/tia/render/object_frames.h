// The boxes of an env's last two frames (box_finder.h).
//
// As many programs show an object in every second frame only, two are looked at.
#pragma once

#include "tia/log/replay.h"
#include "tia/render/box_finder.h"
#include "tia/render/object_view.h"

namespace cule {

struct ObjectFrames {
  const int16_t* settings;  // the facts of the env's game
  int16_t* rows;            // [2][room + 1][kObjectFields], the newer frame last; null: none
  int room, lines;

  CULE_INLINE FrameBoxes before() const { return {rows, room}; }
  CULE_INLINE FrameBoxes last() const { return {rows + (room + 1) * kObjectFields, room}; }

  // Makes room for a new frame: the last becomes the one before it.
  template <class Lanes>
  CULE_INLINE void move_on(const Lanes& lanes) const {
    const int filled = (last().count() + 1) * kObjectFields;
    for (int i = lanes.lane(); i < filled; i += Lanes::kCount)
      before().rows[i] = last().rows[i];
    lanes.sync();
  }
};

// Finds the boxes of a frame that one thread plays, from the TIA's state at its start.
CULE_COLD void see_frame_alone(const ObjectFrames& frames, const TiaFormat& format, TiaState tia,
                               const uint32_t* entries, uint32_t count) {
  frames.move_on(OneLane{});
  LineBits words[LineRoom<LineBits>::kSize] = {};
  BoxFinder finder(frames.settings, frames.last());
  ObjectView<BoxFinder> view(finder, frames.lines, {words, 1});
  for (uint32_t i = 0; i < count; ++i) replay_entry(tia, format, entries[i], view);
  view.finish();
}

}  // namespace cule
