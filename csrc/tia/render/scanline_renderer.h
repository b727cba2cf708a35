// The renderer of a CPU: a view that draws whole scanlines into an env's pictures, and latches
// collisions.
//
// It keeps the bits of the objects along the current scanline, and paints when the scanline ends.
// A scanline that has the same pixels as the one above shares its row. All of each scanline must be
// shown, from left to right.
//
// The rules of the chip are in draw.h, priority.h and collision_latches.h, with their sources. The
// result is that of SpanRenderer, pixel by pixel.
#pragma once

#include "tia/chip/collision_latches.h"
#include "tia/chip/draw.h"
#include "tia/chip/priority.h"
#include "tia/render/box_finder.h"
#include "tia/render/line_painter.h"
#include "tia/render/pictures.h"

namespace cule {

// The bits of all objects along a scanline.
struct LineObjects {
  LineMask bits[kNumTiaObjects];

  CULE_INLINE uint64_t at(uint32_t object, int word) const { return bits[object].words[word]; }

  // The objects that have any.
  CULE_INLINE uint32_t filled() const {
    uint32_t found = 0;
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      uint64_t any = 0;
      for (int word = 0; word < LineMask::kWords; ++word) any |= at(object, word);
      found |= static_cast<uint32_t>(any != 0) << object;
    }
    return found;
  }

  // Takes over what `object` shows now, from pixel `begin` on.
  template <uint32_t kObject>
  CULE_INLINE void find(const TiaState& tia, int begin) {
    uint64_t now[LineMask::kWords];
    if (kObject == kPlayfield) find_playfield(tia, now);
    else find_movable(tia, kObject, now);
    for (int word = 0; word < LineMask::kWords; ++word) {
      uint64_t& old = bits[kObject].words[word];
      old = begin == 0 ? now[word] : old ^ ((old ^ now[word]) & bits_from(begin - 64 * word));
    }
  }

 private:
  static CULE_INLINE uint64_t bits_from(int bit) {
    return bit <= 0 ? ~uint64_t{0} : bit < 64 ? ~uint64_t{0} << bit : 0;
  }
  static CULE_INLINE void find_playfield(const TiaState& tia, uint64_t* now) {
    const uint64_t line = playfield_line(tia);
    for (int word = 0; word < LineMask::kWords; ++word)
      now[word] = playfield_word<uint64_t>(line, 64 * word);
  }
  // All copies together are at most 80 pixels wide. What passes the line's right end continues at
  // the left.
  static CULE_INLINE void find_movable(const TiaState& tia, uint32_t object, uint64_t* now) {
    now[0] = now[1] = now[2] = 0;
    const Extent extent = extent_of(tia, object);
    if (extent.width == 0) return;
    const uint64_t pattern = pattern_of(tia, object, extent.width);
    uint64_t low = extent.skip_first ? 0 : pattern, high = 0;
    for (uint32_t distances = extent.distances; distances; distances >>= 4) {
      const uint32_t pixels = (distances & 0x0F) * 16;
      if (pixels < 64) low |= pattern << pixels;
      else high |= pattern;
    }
    const int first = extent.position / 64, shift = extent.position % 64;
    const uint64_t parts[3] = {low << shift, (low >> 1 >> (63 - shift)) | high << shift,
                               high >> 1 >> (63 - shift)};
    uint64_t placed[2 * LineMask::kWords];
    for (int word = 0; word < 2 * LineMask::kWords; ++word) {
      placed[word] = word == first ? parts[0] : word == first + 1 ? parts[1]
                     : word == first + 2 ? parts[2] : 0;
    }
    constexpr uint64_t kLast = ~uint64_t{0} >> (3 * 64 - kLinePixels);
    now[0] = placed[0] | placed[2] >> 32 | placed[3] << 32;
    now[1] = placed[1] | placed[3] >> 32 | placed[4] << 32;
    now[2] = placed[2] & kLast;
  }
};

// What else is told of each scanline: a BoxFinder, or nobody.
struct NoFinder {
  CULE_INLINE bool repeat_line(int) { return true; }
  CULE_INLINE void begin_line(int) {}
  CULE_INLINE void piece(int, int, int, const PieceLook&, uint32_t, uint32_t, const LineObjects&) {
  }
};

template <class Painter, class Finder = NoFinder>
class ScanlineRenderer {
 public:
  static constexpr bool kSeesColors = true;

  CULE_INLINE ScanlineRenderer(const Pictures& shown, uint32_t front, int lines, Finder& finder)
      : pictures_(shown), front_(front), height_(lines), finder_(finder) {}

  CULE_INLINE void begin_picture() {}
  CULE_INLINE void grey_out(int) {}  // if a frame is cut off, its scanlines have their own rows
  CULE_INLINE void objects_changed(uint32_t objects) { stale_ |= objects; }

  // The pixels of this scanline shown so far must no longer set latches.
  CULE_INLINE void collisions_cleared() { counted_from_ = end_; }

  // Shows pixels [begin, end) of a scanline (draw.h).
  CULE_INLINE void show(TiaState& tia, int line, int begin, int end) {
    if (line >= height_) return;
    if (stale_) priority_ = score_or_priority(tia);
    const LinePiece now = piece_of(tia, begin);
    if (begin == 0) {
      stale_ |= mixed_;  // these look the same all along this scanline
      mixed_ = 0;
      comb_begin_ = kCombPixels;
      counted_from_ = 0;
      pieces_[0] = now;
      num_pieces_ = 1;
    } else if (!pieces_[num_pieces_ - 1].looks_like(now)) {
      pieces_[num_pieces_++] = now;
    }
    if (tia.hmove_blank && begin < comb_begin_) comb_begin_ = begin;
    if (now.is_lit() && stale_) refresh(tia, begin);
    end_ = end;
    if (end == kLinePixels) end_line(tia, line);
  }

 private:
  Pictures pictures_;
  uint32_t front_;  // the picture that is drawn into
  int height_;
  Finder& finder_;
  LineObjects objects_ = {};
  uint32_t stale_ = kAllObjects;  // the objects whose bits are out of date from the beam on
  uint32_t untold_ = 0;           // those whose bits were computed since the finder was told
  uint32_t mixed_ = 0;     // the objects that changed within the scanline: their bits before differ
  uint32_t priority_ = 0;  // from score_or_priority
  // The scanline that is shown: its pieces, up to where it has been shown, the first pixel of the
  // comb of HMOVE, the first pixel that counts for collisions, and whether any objects have changed
  // since the last scanline.
  LinePiece pieces_[kLinePixels];
  int num_pieces_ = 0, end_ = 0, comb_begin_ = kCombPixels, counted_from_ = 0;
  bool changed_ = true;
  // The last scanline that was painted.
  LinePixelMasks last_ = {};
  LinePiece last_pieces_[kLinePixels];
  int last_num_pieces_ = 0, last_comb_begin_ = 0, last_row_ = 0;
  uint32_t last_collisions_ = 0;
  LinePiece unpainted_{0, false, 0, 0};  // its look, with the colors that do not show

  CULE_INLINE LinePiece piece_of(const TiaState& tia, int begin) const {
    const bool lit = !(tia.vblank & 2);
    const uint32_t colors = tia.colup.word | static_cast<uint32_t>(tia.colupf) << 16 |
                            static_cast<uint32_t>(tia.colubk) << 24;
    return {lit ? colors : 0, lit, lit ? priority_ : 0, begin};
  }

  CULE_INLINE void refresh(const TiaState& tia, int begin) {
    const uint32_t stale = stale_;
    stale_ = 0;
    changed_ = true;
    untold_ |= stale;
    if (begin > 0) mixed_ |= stale;
    if (stale & 1u << kPlayer0) objects_.find<kPlayer0>(tia, begin);
    if (stale & 1u << kPlayer1) objects_.find<kPlayer1>(tia, begin);
    if (stale & 1u << kMissile0) objects_.find<kMissile0>(tia, begin);
    if (stale & 1u << kMissile1) objects_.find<kMissile1>(tia, begin);
    if (stale & 1u << kBall) objects_.find<kBall>(tia, begin);
    if (stale & 1u << kPlayfield) objects_.find<kPlayfield>(tia, begin);
  }

  // Paints the scanline, or lets it share the row above, and latches its collisions.
  CULE_INLINE void end_line(TiaState& tia, int line) {
    end_ = 0;
    const bool one = num_pieces_ == 1;
    if (!changed_ && one && pieces_[0].looks_like(unpainted_) &&
        comb_begin_ == last_comb_begin_ && counted_from_ == 0) {
      if (!finder_.repeat_line(line)) tell_finder(line);
      share_row(tia, line);
      return;
    }
    tell_finder(line);
    unpainted_ = one ? pieces_[0] : LinePiece(0, false, 0, 0);
    changed_ = mixed_ != 0 || !one;
    LinePixelMasks masks;
    const uint32_t collisions = one ? find_masks(pieces_[0], masks) : find_pieces(masks);
    leave_out_unseen(masks);
    const bool alike = masks == last_ && has_last_pieces() && comb_begin_ == last_comb_begin_;
    last_collisions_ = collisions;
    if (counted_from_ != 0) changed_ = true;
    if (alike) {
      share_row(tia, line);
      return;
    }
    last_ = masks;
    for (int i = 0; i < num_pieces_; ++i) last_pieces_[i] = pieces_[i];
    last_num_pieces_ = num_pieces_;
    last_comb_begin_ = comb_begin_;
    last_row_ = line;
    uint8_t* pixels = pictures_.own_row(front_, line);
    if (num_pieces_ == 1) Painter::paint(pixels, masks, pieces_[0].colors());
    else Painter::paint(pixels, masks, pieces_, num_pieces_);
    for (int x = comb_begin_; x < kCombPixels; ++x) pixels[x] = 0;
    share_row(tia, line);
  }

  CULE_INLINE void tell_finder(int line) {
    finder_.begin_line(line);
    const uint32_t filled = objects_.filled();
    for (int i = 0; i < num_pieces_; ++i) {
      const LinePiece& piece = pieces_[i];
      const int end = i + 1 < num_pieces_ ? pieces_[i + 1].begin() : kLinePixels;
      finder_.piece(piece.begin(), end, comb_begin_,
                    {piece.colors(), piece.is_lit(), piece.priority()}, filled, untold_, objects_);
    }
    untold_ = 0;
  }

  CULE_INLINE void share_row(TiaState& tia, int line) {
    pictures_.row_number(front_, line) = static_cast<uint8_t>(last_row_);
    tia.collisions |= static_cast<uint16_t>(last_collisions_);
  }

  // Sets `masks` to which color each pixel of the scanline has. All of them look like `piece` apart
  // from their objects. Returns their collisions.
  CULE_INLINE uint32_t find_masks(const LinePiece& piece, LinePixelMasks& masks) const {
    using Vector = LineMask::Vector;
    if (!piece.is_lit()) {
      masks.p0.vector = masks.p1.vector = masks.pf.vector = Vector{};
      return 0;
    }
    LineWord<Vector> line;
    Vector any{}, several{};
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      line.bits[object] = objects_.bits[object].vector;
      several |= any & line.bits[object];
      any |= line.bits[object];
    }
    constexpr uint64_t kLeft = ~uint64_t{0} >> (128 - kLinePixels / 2);
    constexpr Vector kLeftHalf = {~uint64_t{0}, kLeft, 0, 0};
    const ColorWord<Vector> shown = resolve_priority(piece.priority(), line, kLeftHalf);
    masks.p0.vector = shown.p0;
    masks.p1.vector = shown.p1;
    masks.pf.vector = shown.pf;
    return any_of(several) ? collisions_between(0, kLinePixels) : 0;
  }
  // The same for a scanline of several pieces.
  CULE_COLD uint32_t find_pieces(LinePixelMasks& masks) const {
    masks = LinePixelMasks{};
    uint32_t collisions = 0;
    for (int i = 0; i < num_pieces_;) {
      const LinePiece& piece = pieces_[i];
      do ++i;
      while (i < num_pieces_ && pieces_[i].flags() == piece.flags());
      const int end = i < num_pieces_ ? pieces_[i].begin() : kLinePixels;
      if (piece.begin() == 0 && end == kLinePixels) return find_masks(piece, masks);
      if (!piece.is_lit()) continue;
      for (int word = 0; word < LineMask::kWords; ++word) {
        const LineWord<uint64_t> line = piece_of(word, piece.begin(), end);
        masks.add(word, resolve_priority(piece.priority(), line, 64 * word));
      }
      collisions |= collisions_between(piece.begin(), end);
    }
    return collisions;
  }
  // All objects in a word of the scanline, between two pixels.
  CULE_INLINE LineWord<uint64_t> piece_of(int word, int begin, int end) const {
    const int first = 64 * word;
    LineWord<uint64_t> line{};
    if (begin >= first + 64 || end <= first) return line;
    const uint64_t pixels = pixels_in_word<uint64_t>(first, begin, end);
    for (uint32_t object = 0; object < kNumTiaObjects; ++object)
      line.bits[object] = objects_.bits[object].words[word] & pixels;
    return line;
  }
  CULE_COLD uint32_t collisions_between(int begin, int end) const {
    if (begin < counted_from_) begin = counted_from_;
    uint32_t collisions = 0;
    for (int word = 0; word < LineMask::kWords; ++word)
      collisions |= find_collisions(piece_of(word, begin, end));
    return collisions;
  }

  // Sets the colors of objects that do not show to 0, and joins pieces that then look the same.
  CULE_INLINE void leave_out_unseen(const LinePixelMasks& masks) {
    const uint32_t seen = masks.colors_seen();
    pieces_[0] = {pieces_[0].colors() & seen, false, 0, 0};
    int last = 0;
    for (int i = 1; i < num_pieces_; ++i) {
      const LinePiece piece(pieces_[i].colors() & seen, false, 0, pieces_[i].begin());
      if (!piece.looks_like(pieces_[last])) pieces_[++last] = piece;
    }
    num_pieces_ = last + 1;
  }
  CULE_INLINE bool has_last_pieces() const {
    if (num_pieces_ != last_num_pieces_) return false;
    uint64_t differ = 0;
    for (int i = 0; i < num_pieces_; ++i) differ |= pieces_[i].word ^ last_pieces_[i].word;
    return differ == 0;
  }
};

}  // namespace cule
