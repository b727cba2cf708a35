// A view that finds runs of the TIA's objects instead of drawing pixels.
//
// run_finder.h says what runs are.
#pragma once

#include "tia/chip/draw.h"
#include "tia/chip/priority.h"
#include "tia/render/line_cache.h"
#include "tia/render/run_finder.h"

namespace cule {

// `Finder` is a RunFinder.
template <class Finder>
class ObjectView {
 public:
  static constexpr bool kSeesColors = true;
  using Cache = LineCache<LineBits>;

  // Tells `finder` of the first `lines` scanlines.
  CULE_INLINE ObjectView(Finder& finder, int lines, const Cache::Room& room)
      : finder_(finder), height_(lines), cache_{room} {}

  CULE_INLINE void begin_picture() {}
  CULE_INLINE void grey_out(int) {}
  CULE_INLINE void collisions_cleared() {}
  CULE_INLINE void objects_changed(uint32_t objects) { cache_.objects_changed(objects); }
  CULE_INLINE void flush(const TiaState&) { end_piece(); }

  // Shows pixels [begin, end) of a scanline (draw.h). Pixels wait to be looked at together with
  // those that follow on the same scanline, until the look changes.
  CULE_INLINE void show(const TiaState& tia, int line, int begin, int end) {
    if (line >= height_) return;
    const PieceLook look = look_of(tia);
    const bool goes_on = line == line_;
    if (!goes_on || !(look == look_)) {
      end_piece();
      if (!goes_on) {
        cache_.begin_line();
        comb_begin_ = kCombPixels;
      }
      line_ = line;
      look_ = look;
      begin_ = begin;
    }
    if (tia.hmove_blank && begin < comb_begin_) comb_begin_ = begin;
    end_ = end;
    if (look.lit) cache_.refresh(tia, begin);
  }

  // After the frame, or the piece of it that is replayed.
  CULE_INLINE void finish() {
    end_piece();
    finder_.finish();
  }

 private:
  Finder& finder_;
  int height_;
  Cache cache_;
  // What has been shown of a scanline and not looked at yet, and the first pixel of its comb.
  int line_ = kNoLine, begin_ = 0, end_ = 0, comb_begin_ = kCombPixels;
  PieceLook look_ = {};
  // The last piece that was looked at: its scanline, whether it was all of it, its comb and look.
  int last_line_ = kNoLine, last_comb_begin_ = kCombPixels;
  bool last_whole_ = false;
  PieceLook last_look_ = {};

  static CULE_INLINE PieceLook look_of(const TiaState& tia) {
    if (tia.vblank & 2) return {};
    return {tia.colup.word | static_cast<uint32_t>(tia.colupf) << 16 |
                static_cast<uint32_t>(tia.colubk) << 24,
            true, score_or_priority(tia)};
  }

  CULE_INLINE void look_at_piece() {
    const bool whole = begin_ == 0 && end_ == kLinePixels;
    if (!(whole && is_like_last() && finder_.repeat_line(line_))) {
      if (line_ != last_line_) finder_.begin_line(line_);
      finder_.piece(begin_, end_, comb_begin_, look_, cache_.filled, cache_.changed, cache_.bits);
    }
    last_line_ = line_;
    last_whole_ = whole;
    last_comb_begin_ = comb_begin_;
    last_look_ = look_;
    cache_.changed = 0;
  }
  // Whether this scanline, all of which waits, is like the one above.
  CULE_INLINE bool is_like_last() const {
    return cache_.changed == 0 && last_whole_ && last_line_ + 1 == line_ &&
           last_comb_begin_ == comb_begin_ && last_look_ == look_;
  }
  CULE_INLINE void end_piece() {
    if (begin_ != end_) look_at_piece();
    begin_ = end_;
  }
};

}  // namespace cule
