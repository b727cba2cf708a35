// A view that latches collisions and shows nothing, for a few scanlines in which objects that
// matter are known to be near each other: their pixels are compared as each scanline ends.
#pragma once

#include "tia/collision.h"
#include "tia/draw.h"
#include "tia/line_cache.h"

namespace cule {

struct LatchView {
  static constexpr bool kSeesColors = false;
  using Cache = LineCache<LineBits>;

  // `room`: zeroes.
  CULE_INLINE LatchView(uint32_t latches, const Cache::Room& room)
      : objects_(objects_of_latches(latches)), cache_{room, objects_} {}

  CULE_INLINE void objects_changed(uint32_t objects) { cache_.objects_changed(objects & objects_); }
  CULE_INLINE void grey_out(const TiaState&, int) {}

  // What has been shown sets no latches any more.
  CULE_INLINE void collisions_cleared() { begin_ = end_; }

  CULE_INLINE void show(TiaState& tia, int line, int begin, int end) {
    const bool lit = !(tia.vblank & 2);
    if (line != line_ || lit != lit_) {
      flush(tia);
      if (line != line_) cache_.begin_line();
      line_ = line;
      lit_ = lit;
      begin_ = begin;
    }
    if (begin_ == end_) begin_ = begin;
    end_ = end;
    if (lit) cache_.refresh(tia, begin);
  }

  // Latches what has been shown.
  CULE_INLINE void flush(TiaState& tia) {
    uint32_t found = 0;
    if (lit_) {
#pragma unroll 1
      for (int word = begin_ / Cache::kBits; word * Cache::kBits < end_; ++word) {
        found |= find_collisions(cache_.piece(word, begin_, end_));
      }
    }
    tia.collisions |= static_cast<uint16_t>(found);
    begin_ = end_;
  }

 private:
  uint32_t objects_;
  Cache cache_;
  int line_ = -1, begin_ = 0, end_ = 0;  // pixels that have been shown
  bool lit_ = false;                     // whether the beam was on
};

}  // namespace cule
