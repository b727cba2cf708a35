// Which objects have collided in a part of a frame, found without drawing it.
//
// The search skips entries that do not change the objects of the latches in question. Between two
// other entries the objects change only at the end of a scanline, and seldom. So the search looks
// only once at all that is shown between them, on any number of scanlines. It first finds the
// blocks of 8 pixels that each object touches, which is cheap: most objects are nowhere near
// another. It compares pixels only if two objects touch the same block.
//
// The chip sets its latches while it draws. The result is the same.
#pragma once

#include "tia/chip/collision_latches.h"
#include "tia/log/entry_table.h"
#include "tia/log/segment.h"

namespace cule {

constexpr int kBlockPixels = 8;
constexpr int kLineBlocks = kLinePixels / kBlockPixels;

CULE_INLINE uint32_t block_of(int pixel) { return static_cast<uint32_t>(pixel) / kBlockPixels; }

// The blocks that pixels [begin, end) touch; `end` may be beyond the line.
CULE_INLINE uint32_t blocks_between(int begin, int end) {
  return (2u << block_of(end - 1)) - (1u << block_of(begin));
}

// The blocks that a playfield touches. Its right half may repeat the left half, or mirror it. If
// both flags are set, both count.
CULE_INLINE uint32_t playfield_blocks(uint32_t playfield, bool repeated, bool mirrored) {
  // The left half: makes one bit of each pair of its 20 bits.
  uint32_t half = (playfield | playfield >> 1) & 0x55555;
  half = (half | half >> 1) & 0x33333;
  half = (half | half >> 2) & 0xF0F0F;
  half = (half | half >> 4) & 0xF00FF;
  half = (half | half >> 8) & 0x003FF;
  const uint32_t right = reverse_byte(half & 0xFF) << 2 | (half >> 7 & 2) | half >> 9;
  return half | ((repeated ? half : 0) | (mirrored ? right : 0)) << kLineBlocks / 2;
}

// The blocks that a movable object and its copies touch.
CULE_INLINE uint32_t movable_blocks(const Extent& extent) {
  if (extent.width == 0) return 0;
  const uint32_t one =
      blocks_between(extent.position, extent.position + static_cast<int>(extent.width));
  const uint32_t second = extent.distances & 0x0F, third = extent.distances >> 4;
  uint32_t blocks = extent.skip_first ? 0 : one;
  if (second) blocks |= one << second * 16 / kBlockPixels;
  if (third) blocks |= one << third * 16 / kBlockPixels;
  return (blocks | blocks >> kLineBlocks) & ((1u << kLineBlocks) - 1);
}

// The blocks that both objects of any of `latches` touch. Usually `latches` are one or two.
CULE_INLINE uint32_t common_blocks(const uint32_t (&blocks)[kNumTiaObjects], uint32_t latches) {
  constexpr uint64_t kFirst = latch_objects(false), kSecond = latch_objects(true);
  uint32_t common = 0;
#pragma unroll 1
  for (; latches; latches &= latches - 1) {
    const int at = 3 * first_bit(latches);
    common |= blocks[kFirst >> at & 7] & blocks[kSecond >> at & 7];
  }
  return common;
}

// Searches for collisions of the objects of some latches. Keeps the blocks in which these objects
// can meet until one of them changes, and the latches found so far. Also keeps where the beam is:
// the state's own place of it stays as it was.
class CollisionSearch {
 public:
  CULE_INLINE CollisionSearch(const TiaState& tia, uint32_t latches)
      : open_(latches),
        objects_(objects_of_latches(latches)),
        line_end_(tia.cursor + tia.line_left) {
    CULE_OPAQUE(objects_);  // otherwise it is computed again at each use
  }

  CULE_INLINE uint32_t objects() const { return objects_; }
  CULE_INLINE uint32_t found() const { return found_; }
  CULE_INLINE bool has_all() const { return open_ == 0; }

  // From here on `objects` may look different or be switched on or off, and `moved` may be at
  // different positions.
  CULE_INLINE void change(uint32_t objects, uint32_t moved) {
    switched_ |= objects;
    moved_ |= moved;
    changed_ |= objects | moved;
  }

  // Whether nothing can meet before `clock`. Then there is no need to look.
  CULE_INLINE bool is_apart_until(int32_t clock) const {
    return clock <= apart_until_ && !(moved_ & placed_);
  }

  // Moves the beam to `clock`, which is not beyond the picture.
  CULE_INLINE void pass(TiaState& tia, int32_t clock) {
    if (clock <= line_end_) return;
    const int lines = (clock - line_end_ + kClocksPerLine - 1) / kClocksPerLine;
    line_end_ += lines * kClocksPerLine;
    const uint32_t altered = end_lines(tia, lines);
    // A player's blocks include its first copy, so they stay valid when that copy shows again.
    change(altered, altered & ~(1u << kPlayer0 | 1u << kPlayer1));
  }

  // Looks at all that is shown from color clock `from` to `to`. No write may take effect between.
  CULE_INLINE void look_between(TiaState& tia, int32_t from, int32_t to) {
#pragma unroll 1
    do {
      pass(tia, from + 1);
      const int32_t visible = line_end_ - kLinePixels;
      if (to <= visible) return;
      const bool whole = to - from >= kClocksPerLine && !alters_with_beam(tia);
      const int32_t end = to < line_end_ ? to : line_end_;
      const int first = from - visible, last = whole ? kLinePixels : end - visible;
      if (!(tia.vblank & 2)) {
        look(tia, visible, whole || first < 0 ? 0 : first, last);
      }
      from = whole ? to : end;
    } while (from < to);
  }

 private:
  using Word = LineBits;
  static constexpr int kBits = static_cast<int>(sizeof(Word) * 8);
  uint32_t open_;     // the wanted latches that have not been found yet
  uint32_t objects_;  // the objects of all wanted latches
  int32_t line_end_;  // the color clock at which the beam's scanline ends
  uint32_t found_ = 0;
  uint32_t moved_ = 0, changed_ = 0;  // the objects that have since the last look
  uint32_t switched_ = ~0u;  // those that may have been switched on or off since `can_meet_`
  bool can_meet_ = false;    // whether both objects of an open latch are on
  int32_t apart_until_ = kNoClock;  // the beam is in no block of `near_` until this color clock
  uint32_t placed_ = 0;    // the objects whose `blocks_` are known
  uint32_t near_ = ~0u;    // the blocks that both objects of an open latch may touch, on or off
  uint32_t crossing_ = ~0u;  // the blocks of `near_` that have not been searched since a change
  uint32_t blocks_[kNumTiaObjects] = {};

  // Whether the end of a scanline changes an object. If so, it cannot be looked at several
  // scanlines at once.
  static CULE_INLINE bool alters_with_beam(const TiaState& tia) {
    return tia.skip_first.word || has_stars(tia) || tia.reflect_now != (tia.ctrlpf & 1);
  }
  // Whether both objects of an open latch are on. Most writes only move objects.
  CULE_INLINE bool can_meet(const TiaState& tia) {
    if (switched_ & objects_) {
      can_meet_ = (open_ & possible_latches(objects_on(tia))) != 0;
      switched_ = 0;
    }
    return can_meet_;
  }
  // The first pixel from the block of `pixel` on that is in a block of `near_`. If this scanline
  // has none, one in the blank after it.
  CULE_INLINE int next_near(int pixel) const {
    constexpr uint32_t kInBlank = 1u << (kLineBlocks + kHblankClocks / kBlockPixels);
    return first_bit((near_ | kInBlank) & ~0u << block_of(pixel)) * kBlockPixels;
  }

  // Looks at pixels [begin, end) of the scanline whose first pixel is at color clock `visible`.
  CULE_INLINE void look(const TiaState& tia, int32_t visible, int begin, int end) {
    if (changed_ & objects_) forget_moved();
    if (crossing_ == 0) return;
    const uint32_t reached = blocks_between(begin, end);
    if ((crossing_ & reached) == 0) {
      apart_until_ = visible + next_near(end);
      return;
    }
    if (placed_ != objects_) {
      if (!can_meet(tia)) return;
      place_objects(tia);
    }
    const uint32_t here = crossing_ & reached;
    if (here == 0) return;
    if (can_meet(tia)) {
      found_ |= find(tia, here, begin, end);
      open_ &= ~found_;
    }
    const uint32_t first_whole = block_of(begin + kBlockPixels - 1), end_whole = block_of(end);
    if (first_whole < end_whole) crossing_ &= ~((1u << end_whole) - (1u << first_whole));
  }

  // An object that has moved may be anywhere. Its place is not computed until the beam comes to
  // another object: on most scanlines it moves on before that.
  CULE_INLINE void forget_moved() {
#pragma unroll 1
    for (uint32_t left = moved_ & placed_; left; left &= left - 1) {
      blocks_[first_bit(left)] = 0;
#pragma unroll
      for (uint32_t object = 0; object < kNumTiaObjects; ++object) near_ |= blocks_[object];
      blocks_[first_bit(left)] = ~0u;
    }
    if (moved_ & placed_) apart_until_ = kNoClock;
    placed_ &= ~moved_;
    moved_ = changed_ = 0;
    crossing_ = near_;
  }

  // Computes where objects can meet, whether they are on or off: that changes more often than their
  // positions.
  CULE_INLINE void place_objects(const TiaState& tia) {
    const uint32_t unplaced = objects_ & ~placed_;
    if (unplaced & 1u << kPlayfield) {
      blocks_[kPlayfield] = playfield_blocks(tia.playfield, !tia.reflect_now, tia.reflect_now);
    }
    // A loop, so that a GPU has little code to fetch. Each thread can be at a different object.
#pragma unroll 1
    for (uint32_t left = unplaced & kMovableObjects; left; left &= left - 1) {
      const uint32_t object = lowest_object(left);
      Extent place = place_of(tia, object);
      place.skip_first = false;  // the first copy shows again on the next scanline
      if (object == kMissile0 && tia.missile0_shape != kMissileNormal) place.width *= 2;
      blocks_[object] = movable_blocks(place);
    }
    placed_ = objects_;
    near_ = crossing_ = common_blocks(blocks_, open_);
  }

  // The open latches that pixels [begin, end) set. Searches only the blocks `here`.
  CULE_INLINE uint32_t find(const TiaState& tia, uint32_t here, int begin, int end) const {
    uint32_t found = 0;
#pragma unroll 1
    while (here) {
      const int first = first_bit(here) * kBlockPixels;
      const uint32_t in_word = blocks_between(first, first + kBits);
      uint32_t near = 0;
      LineWord<Word> line;
#pragma unroll
      for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
        near |= static_cast<uint32_t>((blocks_[object] & here & in_word) != 0) << object;
        line.bits[object] = 0;
      }
      here &= ~in_word;
      const Word pixels = pixels_in_word<Word>(first, begin, end);
      near &= objects_;
      if (near & 1u << kPlayfield) {
        line.bits[kPlayfield] = playfield_word<Word>(playfield_line(tia), first) & pixels;
      }
#pragma unroll 1
      for (near &= kMovableObjects; near; near &= near - 1) {
        const uint32_t object = lowest_object(near);
        line.bits[object] = movable_word<Word>(tia, object, first) & pixels;
      }
      found |= find_collisions(line);
    }
    return found & open_;
  }
};

// A view that notes which objects a write changes.
struct ChangesView : NoView {
  uint32_t changed = 0;
  CULE_INLINE void objects_changed(uint32_t objects) { changed |= objects; }
};

// Whether an entry changes none of `objects` for now: a write to a player's graphics that does not
// show on them yet, or an HMOVE that moves nothing. Most programs make many of these.
CULE_INLINE bool is_quiet(const TiaState& tia, uint32_t entry, uint32_t objects) {
  using namespace tia_write;
  const uint32_t reg = entry_register(entry);
  if (reg == HMOVE) return moves_nothing(tia, entry_cycle(entry) % kCyclesPerLine);
  if (reg != GRP0 && reg != GRP1) return false;
  return (changed_by_graphics(tia, reg == GRP1, entry_value(entry)) & objects) == 0;
}

// Applies the `effect` of an entry, whose row is `row`. Returns which objects it moves.
CULE_INLINE uint32_t take_effect(TiaState& tia, const TiaFormat& format, const EntryRow& row,
                                 const Effect& effect) {
  switch (row.kind) {
    case EntryKind::kField: set_field(tia, row.field, effect.value); break;
    case EntryKind::kGraphics0: write_graphics(tia, 0, effect.value); break;
    case EntryKind::kGraphics1: write_graphics(tia, 1, effect.value); break;
    case EntryKind::kSize: set_size(tia, effect.reg & 1, effect.value); break;
    case EntryKind::kReset:
      reset_player(tia, effect.reg & 1, static_cast<int>(effect.value), effect.phase);
      break;
    case EntryKind::kTimed: case EntryKind::kOther: {
      ChangesView view;
      write_register(tia, format, AnyRegister{effect.reg}, effect.value, effect.cycle,
                     effect.phase, view);
      // HMOVE may move any object, but usually moves few.
      if (effect.reg == tia_write::HMOVE) return view.changed;
    }
  }
  return row.moves;
}

// The latches among `latches` that are set from color clock `begin` to `end`. `at` must be a state
// from which a replay shows all of this time. Afterwards it is at an unspecified point of the
// replay.
CULE_COLD uint32_t search_entries(SegmentStart& at, const TiaFormat& format, const Replay replay,
                                  int32_t begin, int32_t end, uint32_t latches) {
  using namespace tia_write;
  static constexpr EntryTable kTable = entry_table();
  // Entries that are never skipped: the marks, except the one that begins a frame; writes that
  // clear the latches; and writes that move players, as their positions decide when RESPx takes
  // effect.
  constexpr uint64_t kMarks = uint64_t{1} << kMarkTouch | uint64_t{1} << kMarkGreyOut |
                              uint64_t{1} << kMarkFrameEnd;
  constexpr uint64_t kAlways = kMarks |
                               registers_where(&WriteFacts::cpu_effect, CpuEffect::kClears) |
                               registers_that_move_players();
  constexpr int32_t kCyclesToEffect = 3;  // all writes except RESPx take effect in this time
  TiaState& tia = at.tia;
  CollisionSearch search(tia, latches);
  const uint64_t registers = registers_of_objects(search.objects()) | kAlways;
  uint32_t low = static_cast<uint32_t>(registers), high = static_cast<uint32_t>(registers >> 32);
  CULE_OPAQUE(low);
  CULE_OPAQUE(high);
  int32_t shown = tia.cursor > begin ? tia.cursor : begin;
  if (end > format.last_clock) end = format.last_clock;
  uint32_t next = replay[at.entry];
#pragma unroll 1
  for (uint32_t i = at.entry; shown < end; ++i) {
    const uint32_t entry = next, reg = entry_register(entry);
    next = replay[i + 1];
    // The replay draws up to where an entry takes effect before it turns to the next one, even if
    // the next one would take effect sooner. So an entry may be skipped only if it is too far from
    // the next one for that.
    const bool apart = entry_cycle(next) - entry_cycle(entry) >= kCyclesToEffect;
    if (apart && !is_among(low | uint64_t{high} << 32, reg)) continue;
    if (ends_drawing(entry)) break;
    if (apart && is_quiet(tia, entry, search.objects())) {
      if (reg != HMOVE) write_graphics(tia, reg == GRP1, entry_value(entry));
      continue;
    }
    const EntryRow& row = kTable.rows[reg];
    const Effect effect = effect_by_row<NoView>(tia, row, entry);
    const int32_t clock = effect.clock < end ? effect.clock : end;
    if (clock > shown) {
      if (!search.is_apart_until(clock) && i >= replay.after_clear) {
        search.look_between(tia, shown, clock);
        if (search.has_all()) break;
      }
      shown = clock;
    }
    if (shown == end || i >= replay.count) break;
    if (reg >= kMarkFrameBegin) continue;
    search.pass(tia, effect.clock);
    const uint32_t moved = take_effect(tia, format, row, effect);
    search.change(row.objects, moved);
  }
  return search.found();
}

}  // namespace cule
