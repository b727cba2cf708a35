// Replays a part of a frame for a ScanlineRenderer, scanline by scanline: in each, first the writes
// before its first pixel, then those within it.
//
// The result is that of replay_segment with any other view (segment.h). This is only faster: the
// beam is a number of this loop, and most writes set a field or a player's graphics.
#pragma once

#include "tia/log/entry_table.h"
#include "tia/log/segment.h"
#include "tia/render/scanline_renderer.h"

namespace cule {

template <class View>
struct ScanlineReplay {
  SegmentStart& at;
  const TiaFormat& format;
  const Replay& replay;
  View& view;

  // Draws scanline `line`, which begins at color clock `begin`. What takes effect at clock `end` or
  // later is left to the next one. Returns false if the drawing ends.
  CULE_INLINE bool draw(int line, int32_t begin, int32_t end) {
    static constexpr EntryTable kTable = entry_table();
    const int32_t visible = begin + kHblankClocks;
    TiaState& tia = at.tia;
    uint32_t i = at.entry;
    int shown = 0;
    for (; i < replay.count; ++i) {
      const uint32_t entry = replay.entries[i], value = entry_value(entry);
      const EntryRow& row = kTable.rows[entry_register(entry)];
      if (row.kind == EntryKind::kOther && ends_drawing(entry)) break;
      const Effect effect = effect_by_row<View>(tia, row, entry);
      if (effect.clock >= end) {
        at.entry = i;
        if (shown < kLinePixels) show(line, shown, kLinePixels);
        return true;
      }
      if (effect.clock - visible > shown) {
        show(line, shown, effect.clock - visible);
        shown = effect.clock - visible;
      }
      switch (row.kind) {
        case EntryKind::kField: {
          const bool changes = set_field(tia, row.field, value);
          view.objects_changed(changes ? row.objects : 0);
          break;
        }
        case EntryKind::kGraphics0: write_shown_graphics<0>(value); break;
        case EntryKind::kGraphics1: write_shown_graphics<1>(value); break;
        case EntryKind::kSize: write_shown_size(effect.reg & 1, value); break;
        case EntryKind::kReset:
          view.objects_changed(row.moves);
          reset_player(tia, effect.reg & 1, static_cast<int>(effect.value), effect.phase);
          break;
        case EntryKind::kTimed: case EntryKind::kOther:
          if (effect.reg == tia_write::CXCLR) view.collisions_cleared();
          take_effect(tia, format, effect, view);
      }
    }
    at.entry = i;
    return false;
  }

 private:
  CULE_INLINE void show(int line, int from, int to) {
    view.show(at.tia, line, from, to);
    if (from < kCombPixels && to >= kCombPixels) at.tia.hmove_blank = 0;
  }
  template <uint32_t kWhich>
  CULE_INLINE void write_shown_graphics(uint32_t value) {
    view.objects_changed(changed_by_graphics(at.tia, kWhich, value));
    write_graphics(at.tia, kWhich, value);
  }
  // Most programs that multiply a player this way show no missile.
  CULE_INLINE void write_shown_size(uint32_t which, uint32_t value) {
    const uint32_t missile = missile_on(at.tia, which);
    view.objects_changed((1u << kPlayer0 | missile << kMissile0) << which);
    set_size(at.tia, which, value);
  }
};

// A view of what comes before the part that is drawn.
struct HiddenView {
  static constexpr bool kSeesColors = true;
  CULE_INLINE void begin_picture() {}
  CULE_INLINE void show(const TiaState&, int, int, int) {}
  CULE_INLINE void grey_out(int) {}
  CULE_INLINE void objects_changed(uint32_t) {}
  CULE_INLINE void collisions_cleared() {}
};
CULE_COLD bool replay_hidden(SegmentStart& at, const TiaFormat& format, const Replay replay,
                             int32_t end) {
  HiddenView view;
  SegmentReplay<HiddenView> before{at, format, replay, end, view};
  return before.go_on(end);
}

// Replays a segment as a whole.
template <class Painter, class Finder>
CULE_INLINE void replay_segment(SegmentStart& at, const TiaFormat& format, const Replay& replay,
                                int32_t begin, int32_t end,
                                ScanlineRenderer<Painter, Finder>& view) {
  TiaState& tia = at.tia;
  bool goes_on = tia.cursor >= begin || replay_hidden(at, format, replay, begin);
  CULE_CHECK(!goes_on || tia.cursor == begin);
  bool at_end = tia.line_left == 0;  // of the scanline above
  ScanlineReplay<ScanlineRenderer<Painter, Finder>> lines{at, format, replay, view};
  int line = (begin - tia.origin) / kClocksPerLine;
  for (int32_t clock = begin; goes_on && clock < end; ++line) {
    if (at_end) view.objects_changed(end_lines(tia, 1));
    const int32_t next = clock + kClocksPerLine;
    goes_on = lines.draw(line, clock, next < end ? next + 1 : end);
    clock = next;
    at_end = true;
  }
  if (at.entry < replay.after_clear) tia.collisions = 0;
}

}  // namespace cule
