// The boxes of an env's last two frames (object_view.h).
//
// As many programs show an object in every second frame only, two are looked at.
#pragma once

#include "tia/log/replay.h"
#include "tia/render/object_view.h"

namespace cule {

struct ObjectFrames {
  const int16_t* settings;  // the facts of the env's game
  int16_t* rows;            // [2][room + 1][kObjectFields], the newer frame last; null: none
  int room, lines;

  CULE_INLINE FrameBoxes before() const { return {rows, room}; }
  CULE_INLINE FrameBoxes last() const { return {rows + (room + 1) * kObjectFields, room}; }

  // Makes room for a new frame: the last becomes the one before it.
  CULE_INLINE void move_on() const {
    const int filled = (last().count() + 1) * kObjectFields;
    for (int i = 0; i < filled; ++i) before().rows[i] = last().rows[i];
  }
};

// Finds the boxes of a frame that one thread plays, from the TIA's state at its start.
CULE_COLD void see_frame_alone(const ObjectFrames& frames, const TiaFormat& format, TiaState tia,
                               const uint32_t* entries, uint32_t count) {
  frames.move_on();
  LineBits words[LineRoom<LineBits>::kSize] = {};
  ObjectView view(frames.settings, frames.last(), frames.lines, {words, 1});
  for (uint32_t i = 0; i < count; ++i) replay_entry(tia, format, entries[i], view);
  view.finish();
}

}  // namespace cule
