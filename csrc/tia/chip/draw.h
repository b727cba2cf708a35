// Moves the beam to a color clock, and draws the picture up to there: scanline by scanline, in
// pieces within which nothing changes.
//
// A `View` renders the picture. It has these functions:
//   begin_picture()               a frame's picture begins
//   show(tia, line, begin, end)   pixels [begin, end) of visible scanline `line` show `tia`. If
//                                 collisions matter, the view latches them. All pixels are black if
//                                 the beam is off (VBLANK). After HMOVE, pixels [begin, 8) are
//                                 black
//   grey_out(line)                the frame is cut off: from `line` on, what the picture holds
//                                 turns grey
//   objects_changed(objects)      the pixels of these objects may differ from now on; a bit for
//                                 each TiaObject
// `View::kSeesColors` is false for a view that ignores colors. Then writes to colors need not wait
// for the beam.
//
// The chip draws each pixel as it goes. With the delays of write_facts.h the result is the same as
// ale-py's.
#pragma once

#include "tia/chip/beam.h"
#include "tia/chip/objects.h"

namespace cule {

// Draws a piece of scanline `line`: the next `advance` color clocks. The piece begins `from` clocks
// after the start of the scanline.
template <class View>
CULE_INLINE void draw_piece(TiaState& tia, View& view, int line, int from, int advance) {
  const int end = from + advance;
  const int begin = from < kHblankClocks ? (end < kHblankClocks ? end : kHblankClocks) : from;
  if (end > begin) view.show(tia, line, begin - kHblankClocks, end - kHblankClocks);
  if (begin < kCombEnd && end >= kCombEnd) tia.hmove_blank = 0;
}

// Draws up to `clock`. With `kOneLine`, the rest of the way must be within one scanline. Then there
// is no loop. Before a loop, a compiler would compute for each write what drawing may need.
template <bool kOneLine = false, class View>
CULE_INLINE void draw_until(TiaState& tia, const TiaFormat& format, int32_t clock, View& view) {
  if (!has_way_to(tia, format, clock)) return;
#pragma unroll 1
  do {
    if (tia.line_left == 0) {
      tia.line_left = kClocksPerLine;
      const uint32_t changed = end_lines(tia, 1);
      if (changed) view.objects_changed(changed);
    }
    const int from = clocks_into_line(tia), way = clock - tia.cursor;
    const int line = (tia.cursor - tia.origin) / kClocksPerLine;
    const int advance = way < tia.line_left ? way : tia.line_left;
    tia.cursor += advance;
    tia.line_left -= advance;
    draw_piece(tia, view, line, from, advance);
  } while (!kOneLine && tia.cursor < clock);
  CULE_CHECK(tia.cursor == clock);
}

}  // namespace cule
