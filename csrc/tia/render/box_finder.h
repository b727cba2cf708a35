// Finds boxes around the TIA's objects: joins runs (run_finder.h).
//
// Runs of the same class are one box if they touch, also at a corner, or overlap: on the same
// scanline, on neighbouring ones, or over as many scanlines without a run as the settings allow. In
// a class of one color, only runs of the same color do. Boxes come in the order of their first
// runs, and have those runs' colors. Boxes are the project's own.
#pragma once

#include "common/lanes.h"
#include "tia/render/box.h"

namespace cule {

// Writes a frame's boxes. `box_of(i)` are `count` boxes and parts of others, in the order of their
// first runs. Those for which there is no room are added to `left_out`.
template <class Lanes, class BoxOf>
CULE_INLINE void complete_boxes(const FrameBoxes& boxes, int count, int left_out,
                                const Lanes& lanes, const BoxOf& box_of) {
  constexpr int kMostLeftOut = 0x7FFF;
  const int found = keep_items<Box>(
      lanes, count,
      [&](int i, Box& box) CULE_INLINE_LAMBDA {
        box = box_of(i);
        return !box.is_part();
      },
      [&](int i, Box box) CULE_INLINE_LAMBDA {
        if (i < boxes.room) box.to_row(boxes.at(i));
      });
  const int kept = found < boxes.room ? found : boxes.room, without = left_out + found - kept;
  if (lanes.lane() == 0) {
    boxes.count() = static_cast<int16_t>(kept);
    boxes.left_out() = static_cast<int16_t>(without < kMostLeftOut ? without : kMostLeftOut);
  }
  lanes.sync();
}

// Joins the runs of a frame, of which it is told as RunFinder does, in one thread. All is inline,
// as a GPU would otherwise have its members in memory.
//
// Runs that later ones may touch are in numbered places, of which sets are words with a bit for
// each. So a scanline or an object that is like the one above costs a few instructions, however
// many runs it has: where a run ends, and its box, is written down when it has ended.
class BoxMerger {
 public:
  // Works in `room`, and `finish` puts what it has found into `boxes`.
  CULE_INLINE BoxMerger(const int16_t* settings, const FrameBoxes& boxes, BoxRoom& room)
      : settings_(settings),
        line_gap_(settings[kLineGap]),
        one_color_classes_(settings[kOneColorClasses]),
        boxes_(boxes),
        room_(room) {
    for (int object = 0; object < kObjects; ++object) {
      const int of_class = settings[kClassOf + object];
      classes_ |= static_cast<uint32_t>(of_class) << (kClassBits * object);
      members_ |= uint64_t{1} << (kObjects * of_class + object);
      room_.sets[object] = 0;
    }
  }

  CULE_INLINE void repeat_line(int line) { line_ = line; }
  CULE_INLINE void begin_line(int line) {
    const int oldest = line - 1 - line_gap_;
    end_runs(above_ & ~now_, line_above_);
    const bool cut = last_cut(settings_, line) > line_;
    if (cut || line_ < oldest) {
      end_runs(now_, line_);
      now_ = 0;
    }
    if (cut || line_gap_ == 0) {
      live_ = now_;
    } else {
      Set ended = 0;
      for_each(live_ & ~now_, [&](int run) CULE_INLINE_LAMBDA {
        if (room_.line_of(run) < oldest) ended |= bit(run);
      });
      live_ &= ~ended;
    }
    above_ = now_;
    now_ = 0;
    line_above_ = line_;
    line_ = line;
  }

  CULE_INLINE void repeat_object(uint32_t object) { now_ |= above_ & room_.sets[object]; }

  // Puts a run into the box that it belongs to. If it joins several, they become one. A run that
  // has found no room is left out until it ends, whether it is told again or not. A run of a piece
  // may go on with one of the piece before.
  CULE_INLINE void add_run(uint32_t object, uint32_t color, int begin, int end, bool of_piece) {
    const int of_class = static_cast<int>(classes_ >> (kClassBits * object) & kClassMask);
    const uint32_t same_bits = Run::same_bits(one_color_classes_, of_class);
    int same = of_piece ? part_of_same(object, color, begin) : kNoRun, box = kNoBox;
    const bool is_part = same != kNoRun;
    if (is_part) begin = room_.looks_of(same).begin();
    const RunLooks looks = RunLooks::of(object, of_class, color, begin, end);
    Set touched = 0;
    for_each(may_touch(of_class), [&](int run) CULE_INLINE_LAMBDA {
      if (room_.looks_of(run).touches(looks, same_bits)) touched |= bit(run);
    });
    for_each(touched, [&](int run) CULE_INLINE_LAMBDA {
      if (room_.looks_of(run).word == looks.word && same == kNoRun) same = run;
      const int its = room_.box_of(run);
      if (its != kNoBox && its != box) box = box == kNoBox ? its : join(box, its);
    });
    const bool is_new = same == kNoRun, has_room = !is_new || ~live_ != 0;
    const bool stays_out = !is_part && !is_new && room_.box_of(same) == kNoBox;
    const bool begins = box == kNoBox && !stays_out && has_room;
    if (begins) box = new_box();
    if (stays_out) box = kNoBox;
    else left_out_ += box == kNoBox || !has_room;
    if (!has_room) return;
    if (is_new) same = new_run(object);
    now_ |= bit(same);
    room_.looks[same] = looks.word;
    room_.places[same] = Run::place_of(line_, box);
    const Box now = Box::of(looks, line_);
    if (box != kNoBox) room_.boxes[box] = begins ? now : room_.boxes[box].with(now);
  }

  // After the last scanline: boxes are those of all runs only then.
  CULE_HD void finish() {
    end_runs(above_ & ~now_, line_above_);
    end_runs(now_, line_);
    complete_boxes(boxes_, count_, left_out_, OneLane{},
                   [this](int i) CULE_INLINE_LAMBDA { return room_.boxes[i]; });
  }

 private:
  using Set = RunSet;
  static constexpr int kObjects = static_cast<int>(kNumTiaObjects), kNoRun = -1, kNoBox = -1;
  static constexpr int kClassBits = 3;
  static constexpr uint32_t kClassMask = (1u << kClassBits) - 1;
  static constexpr uint64_t kMembersMask = (1u << kObjects) - 1;

  const int16_t* settings_;
  int line_gap_, one_color_classes_;
  uint32_t classes_ = 0;  // of the objects
  uint64_t members_ = 0;  // of each class the objects, kObjects bits
  FrameBoxes boxes_;
  BoxRoom& room_;
  // The runs that one of this scanline may belong to; of these, those of this scanline, which is
  // not written down in them yet, and those of the scanline above, some of which may be of this
  // one, too; and those that have ever been live.
  Set live_ = 0, now_ = 0, above_ = 0, used_ = 0;
  int count_ = 0, left_out_ = 0;
  int line_ = kNoLine, line_above_ = kNoLine;

  // Calls `take(run)` for each run of a set.
  template <class Take>
  static CULE_INLINE void for_each(Set runs, const Take& take) {
    uint32_t word = static_cast<uint32_t>(runs), rest = static_cast<uint32_t>(runs >> 32);
    for (int base = 0; word | rest; word &= word - 1) {
      if (word == 0) {
        word = rest;
        rest = 0;
        base = 32;
      }
      take(base + first_bit(word));
    }
  }
  static CULE_INLINE Set bit(int run) { return Set{1} << run; }

  // The live runs of the objects of a class.
  CULE_INLINE Set may_touch(int of_class) const {
    Set runs = 0;
    uint32_t objects = static_cast<uint32_t>(members_ >> (kObjects * of_class) & kMembersMask);
    for (; objects; objects &= objects - 1) runs |= room_.sets[first_bit(objects)];
    return live_ & runs;
  }
  // The run of this scanline and object that goes on at `begin`, as the pieces of a scanline may
  // divide a run; or kNoRun.
  CULE_INLINE int part_of_same(uint32_t object, uint32_t color, int begin) const {
    int found = kNoRun;
    for_each(now_ & room_.sets[object], [&](int run) CULE_INLINE_LAMBDA {
      const RunLooks looks = room_.looks_of(run);
      if (looks.color() == color && begin - looks.end() < gap_of(settings_, object)) found = run;
    });
    return found;
  }

  // A place for a run of an object, of which there is one.
  CULE_INLINE int new_run(uint32_t object) {
    const int run = first_bit(~live_);
    if (used_ & bit(run)) room_.sets[room_.looks_of(run).object()] &= ~bit(run);
    room_.sets[object] |= bit(run);
    used_ |= bit(run);
    live_ |= bit(run);
    return run;
  }

  // Writes down that the last scanline of these runs was `line`.
  CULE_INLINE void end_runs(Set runs, int line) {
    for_each(runs, [&](int run) CULE_INLINE_LAMBDA {
      const int box = room_.box_of(run);
      room_.places[run] = Run::place_of(line, box);
      if (box != kNoBox) room_.boxes[box] = room_.boxes[box].until(line);
    });
  }

  // Makes that of two boxes which began later a part of the other one. Returns the other one.
  CULE_INLINE int join(int one, int other) {
    const int box = one < other ? one : other, part = one < other ? other : one;
    room_.boxes[box] = room_.boxes[box].with(room_.boxes[part]);
    room_.boxes[part] = Box::part_of(box);
    for_each(live_, [&](int run) CULE_INLINE_LAMBDA {
      if (room_.box_of(run) == part) room_.places[run] = Run::place_of(room_.line_of(run), box);
    });
    return box;
  }
  CULE_INLINE int new_box() { return count_ < BoxRoom::kMostBoxes ? count_++ : kNoBox; }
};

// Finds the boxes of a frame in one thread. It is told of the frame as a RunFinder is.
class BoxFinder : BoxRoom, public RunFinder<BoxMerger> {
 public:
  // Puts what it finds into `boxes`.
  CULE_INLINE BoxFinder(const int16_t* settings, const FrameBoxes& boxes)
      : RunFinder(settings, BoxMerger(settings, boxes, *this)) {}
  BoxFinder(const BoxFinder&) = delete;
  BoxFinder& operator=(const BoxFinder&) = delete;
};

}  // namespace cule
