// What a game's facts say about runs and boxes of its objects (run_finder.h, box_finder.h), and the
// rows of numbers that boxes and objects are.
#pragma once

#include "tia/chip/objects.h"

namespace cule {

// The columns of an object's row. In a frame's boxes, kKind has a bit for each TiaObject.
enum ObjectField : int { kKind, kX, kY, kWidth, kHeight, kColor, kVisible, kObjectFields };

// The facts of a group's game: a row of settings, then a row for each rule (kernels/object_list.h)
// and for each place (kernels/object_places.h).
constexpr int kObjectFactColumns = 66, kMostObjectRules = 63;
constexpr int kObjectFactRows = kMostObjectRules + 1;
enum ObjectSetting : int {
  kClassOf,           // of each TiaObject
  kPlayerGap = 6,     // pixels of a player are one run if gaps between them are shorter
  kLineGap,           // how many scanlines without a run may be between two of a box
  kOneColorClasses,   // a bit for each class whose boxes are of one color
  kNumRules,
  kNumPlaces,
  kCutFrom,   // boxes end above this scanline, and above each one that is kCutPitch further,
  kCutTo,     // up to this one
  kCutPitch,  // 0: nowhere
};

struct ObjectRow {
  int16_t fields[kObjectFields];
};
CULE_INLINE void copy_row(int16_t* to, const int16_t* from) {
  for (int field = 0; field < kObjectFields; ++field) to[field] = from[field];
}

// No scanline.
constexpr int kNoLine = -2;

// An object's pixels are one run if gaps between them are shorter.
CULE_INLINE int gap_of(const int16_t* settings, uint32_t object) {
  return object <= kPlayer1 ? settings[kPlayerGap] : 1;
}
// The last scanline up to this one above which boxes end, or kNoLine.
CULE_INLINE int last_cut(const int16_t* settings, int line) {
  const int from = settings[kCutFrom], to = settings[kCutTo], pitch = settings[kCutPitch];
  if (pitch == 0 || line < from || to < from) return kNoLine;
  const int steps = ((line < to ? line : to) - from) / pitch;
  return from + steps * pitch;
}
// Whether boxes end above a scanline.
CULE_INLINE bool is_cut(const int16_t* settings, int line) {
  return settings[kCutPitch] != 0 && last_cut(settings, line) == line;
}
// The first scanline whose runs one of scanline `line` may touch.
CULE_INLINE int oldest_for(const int16_t* settings, int line) {
  const int oldest = line - 1 - settings[kLineGap], cut = last_cut(settings, line);
  return oldest < cut ? cut : oldest;
}

}  // namespace cule
