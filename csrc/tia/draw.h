// Moving the beam: draws the picture up to a color clock, line by line, in pieces within which nothing changes.
//
// A `View` is told what to draw:
//   show(tia, line, begin, end)   pixels [begin, end) of visible scanline `line` show `tia`; where collisions matter, it latches them.
//                                 With the beam off (VBLANK) they are black, and after HMOVE those of [begin, 8) are
//   grey_out(tia, line)           the frame is cut off; what the picture holds from `line` on turns grey
//   objects_changed(objects)      the bit of each TiaObject whose pixels moved
// `View::kSeesColors` is false for one to which colors are all the same, so that they need not be changed at the right moment.
#pragma once

#include "tia/beam.h"
#include "tia/instruction_buffer.h"
#include "tia/objects.h"

namespace cule {

constexpr uint32_t kAllObjects = (1u << kNumTiaObjects) - 1;

// One piece of one scanline: `advance` clocks from the cursor, which stands `from` clocks into line `line`.
template <class View>
CULE_INLINE void draw_piece(TiaState& tia, View& view, int line, int from, int advance) {
  const int end = from + advance;
  const int begin = from < kHblankClocks ? (end < kHblankClocks ? end : kHblankClocks) : from;
  if (end > begin) view.show(tia, line, begin - kHblankClocks, end - kHblankClocks);
  if (begin < kCombEnd && end >= kCombEnd) tia.hmove_blank = 0;
}

template <class View>
CULE_INLINE void draw_until(TiaState& tia, const TiaFormat& format, int32_t clock, View& view) {
  if (!has_way_to(tia, format, clock)) return;
#pragma unroll 1
  do {
    const int from = clocks_into_line(tia);
    const int line = (tia.cursor - tia.origin - (from == kClocksPerLine)) / kClocksPerLine;
    const bool line_ends = clock > tia.cursor + tia.line_left;
    const int advance = line_ends ? tia.line_left : clock - tia.cursor;
    tia.cursor += advance;
    tia.line_left = line_ends ? kClocksPerLine : tia.line_left - advance;
    draw_piece(tia, view, line, from, advance);
    if (!line_ends) continue;
    const uint32_t changed = end_lines(tia, 1);
    if (changed) view.objects_changed(changed);
  } while (tia.cursor < clock);
}

}  // namespace cule
