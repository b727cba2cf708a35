// Collisions, pixel by pixel, from the registers, for tests: slow, and with nothing kept from one
// look to the next.
#pragma once

#include <vector>

#include "tia/chip/collision_latches.h"

namespace cule {

inline bool covers(const TiaState& tia, uint32_t object, int pixel) {
  if (object == kPlayfield) {
    const int bit = pixel / 4;
    return tia.playfield >> (bit < 20 ? bit : tia.reflect_now ? 39 - bit : bit - 20) & 1;
  }
  static const std::vector<std::vector<int>> kCopies = {
      {0}, {0, 16}, {0, 32}, {0, 16, 32}, {0, 64}, {0}, {0, 32, 64}, {0}};  // by NUSIZx
  const uint32_t which = object & 1;
  const bool player = object <= kPlayer1, ball = object == kBall;
  const int size = tia.nusiz[which] & 7;
  const int scale = !player ? 1 : size == 5 ? 2 : size == 7 ? 4 : 1;
  const uint32_t graphics = tia.vdelp[which] ? tia.grp[2 + which] : tia.grp[which];
  int width = player ? 8 * scale : 1 << ((ball ? tia.ctrlpf : tia.nusiz[which]) >> 4 & 3);
  if (object == kMissile0 && tia.missile0_shape == kMissileStretched) width = width < 4 ? 2 : 8;
  if (object == kMissile0 && tia.missile0_shape == kMissileHidden) return false;
  if (ball && !(tia.vdelbl ? tia.enabl[1] : tia.enabl[0])) return false;
  if (!ball && !player && (!tia.enam[which] || tia.resmp[which])) return false;
  for (const int distance : ball ? kCopies[0] : kCopies[static_cast<size_t>(size)]) {
    if (player && distance == 0 && tia.skip_first[which]) continue;
    const int from = pixel - position_of(tia, object) - distance - (scale > 1);
    const int at = (from % kLinePixels + kLinePixels) % kLinePixels;
    const int bit = tia.refp[which] ? at / scale : 7 - at / scale;
    if (at < width && (!player || graphics >> bit & 1)) return true;
  }
  return false;
}

struct PixelView {
  static constexpr bool kSeesColors = false;
  void begin_picture() {}
  void objects_changed(uint32_t) {}
  void grey_out(int) {}
  void show(TiaState& tia, int, int begin, int end) {
    if (tia.vblank & 2) return;
    for (int pixel = begin; pixel < end; ++pixel) {
      bool on[kNumTiaObjects];
      for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
        on[object] = covers(tia, object, pixel);
      }
      for (uint32_t latch = 0; latch < kNumLatches; ++latch) {
        const bool both = on[latch_objects(false) >> 3 * latch & 7] &&
                          on[latch_objects(true) >> 3 * latch & 7];
        tia.collisions = static_cast<uint16_t>(tia.collisions | both << latch);
      }
    }
  }
};

}  // namespace cule
