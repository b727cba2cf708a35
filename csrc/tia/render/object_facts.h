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
CULE_INLINE bool has_cuts(const int16_t* settings) { return settings[kCutPitch] != 0; }
// Whether boxes end above a scanline.
CULE_INLINE bool is_cut(const int16_t* settings, int line) {
  const int from = settings[kCutFrom], pitch = settings[kCutPitch];
  return pitch != 0 && line >= from && line <= settings[kCutTo] && (line - from) % pitch == 0;
}

}  // namespace cule
