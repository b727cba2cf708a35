// Moving the beam: draws the picture up to a color clock, line by line, in pieces within which
// nothing changes.
//
// A `View` is told what to draw:
//   begin_picture()               a frame's picture begins
//   show(tia, line, begin, end)   pixels [begin, end) of visible scanline `line` show `tia`; where
//                                 collisions matter, it latches them. With the beam off (VBLANK)
//                                 they are black, and after HMOVE those of [begin, 8) are
//   grey_out(line)                the frame is cut off; what the picture holds from `line` on turns
//                                 grey
//   objects_changed(objects)      the bit of each TiaObject whose pixels moved
// `View::kSeesColors` is false for one to which colors are all the same, so that they need not be
// changed at the right moment.
#pragma once

#include "tia/beam.h"
#include "tia/instruction_buffer.h"
#include "tia/objects.h"

namespace cule {

// One piece of one scanline: `advance` clocks from the cursor, which is `from` clocks into line
// `line`.
template <class View>
CULE_INLINE void draw_piece(TiaState& tia, View& view, int line, int from, int advance) {
  const int end = from + advance;
  const int begin = from < kHblankClocks ? (end < kHblankClocks ? end : kHblankClocks) : from;
  if (end > begin) view.show(tia, line, begin - kHblankClocks, end - kHblankClocks);
  if (begin < kCombEnd && end >= kCombEnd) tia.hmove_blank = 0;
}

// `kOneLine`: there is no more than one scanline's way to `clock`. So there is no loop, before
// which a compiler would work out for each write what drawing may need.
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
