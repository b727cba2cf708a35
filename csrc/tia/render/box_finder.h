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

// Joins the runs of a frame, or of a part of it, of which it is told as RunFinder does. All is
// inline, as a GPU would otherwise have its members in memory. `Boxes` has room for boxes: `room`,
// `box` and `put`, as FrameBoxes. All lanes of a kind of Lanes (common/lanes.h) call its functions
// together, and what they write is for all of them.
//
// Runs that later ones may touch are in numbered places, of which sets are words with a bit for
// each. So a scanline or an object that is like the one above costs a few instructions, however
// many runs it has: where a run ends, and its box, is written down when it has ended. One lane
// looks at the runs of a set in turn; a warp looks at all of them at once.
template <class Boxes, class Lanes>
class BoxMerger {
 public:
  static constexpr int kNoBox = -1;

  // Puts what it finds into `boxes`, and works in `runs`.
  CULE_INLINE BoxMerger(const int16_t* settings, const Boxes& boxes, LiveRuns& runs,
                        const Lanes& lanes)
      : settings_(settings),
        line_gap_(settings[kLineGap]),
        one_color_classes_(settings[kOneColorClasses]),
        boxes_(boxes),
        runs_(runs),
        lanes_(lanes) {
    for (int object = 0; object < kObjects; ++object) {
      const int of_class = settings[kClassOf + object];
      classes_ |= static_cast<uint32_t>(of_class) << (kClassBits * object);
      members_ |= uint64_t{1} << (kObjects * of_class + object);
    }
    clear_sets();
  }

  // Scanlines from `first` to `last` are like the one above.
  CULE_INLINE void repeat_lines(int first, int last) {
    if (has_cuts(settings_)) {
      for (int line = first; line < last; ++line) repeat_line(line);
    }
    repeat_line(last);
  }
  CULE_INLINE void repeat_line(int line) {
    if (is_cut(settings_, line)) begin_again(line);
    else line_ = line;
  }

  CULE_INLINE void begin_line(int line) {
    const int oldest = line - 1 - line_gap_;
    end_runs(above_ & ~now_, line_above_);
    const bool cut = is_cut(settings_, line);
    was_cut_ |= cut;
    if (cut || line_ < oldest) {
      end_runs(now_, line_);
      now_ = 0;
    }
    if (cut || line_gap_ == 0) live_ = now_;
    else live_ &= ~those(live_ & ~now_, [&](int run) CULE_INLINE_LAMBDA {
      return runs_.line_of(run) < oldest;
    });
    above_ = now_;
    now_ = 0;
    line_above_ = line_;
    line_ = line;
  }

  CULE_INLINE void repeat_object(uint32_t object) { now_ |= of_object(above_, object); }

  struct Added {
    Run run;
    bool begins;  // whether it begins a box
  };
  // Puts a run into the box that it belongs to. If it joins several, they become one. A run that
  // has found no room is left out until it ends, whether it is told again or not. A run of a piece
  // may go on with one of the piece before.
  CULE_INLINE Added add_run(uint32_t object, uint32_t color, int begin, int end, bool of_piece) {
    const int of_class = static_cast<int>(classes_ >> (kClassBits * object) & kClassMask);
    const uint32_t same_bits = Run::same_bits(one_color_classes_, of_class);
    int same = of_piece ? part_of_same(object, color, begin) : kNoRun, box = kNoBox;
    const bool is_part = same != kNoRun;
    if (is_part) begin = runs_.looks_of(same).begin();
    const RunLooks looks = RunLooks::of(object, of_class, color, begin, end);
    const Set touched = those(may_touch(of_class), [&](int run) CULE_INLINE_LAMBDA {
      return runs_.looks_of(run).touches(looks, same_bits);
    });
    for_each(touched, [&](int run) CULE_INLINE_LAMBDA {
      if (runs_.looks_of(run).word == looks.word && same == kNoRun) same = run;
      const int its = runs_.box_of(run);
      if (its != kNoBox && its != box) box = box == kNoBox ? its : join(box, its);
    });
    const bool is_new = same == kNoRun, has_room = !is_new || ~live_ != 0;
    const bool stays_out = !is_part && !is_new && runs_.box_of(same) == kNoBox;
    const bool begins = box == kNoBox && !stays_out && has_room;
    crowded_ |= !has_room;
    if (begins) box = new_box();
    if (stays_out) box = kNoBox;
    else if ((box == kNoBox || !has_room) && left_out_ < kMostLeftOut) ++left_out_;
    const Run run{looks, Run::place_of(line_, box)};
    if (!has_room) return {run, false};
    if (is_new) same = new_run(object);
    now_ |= bit(same);
    const Box now = Box::of(looks, line_);
    const Box whole = begins || box == kNoBox ? now : boxes_.box(box).with(now);
    lanes_.sync();  // all have read what there was
    if (lanes_.lane() == 0) {
      runs_.looks[same] = looks.word;
      runs_.places[same] = run.place;
      if (box != kNoBox) boxes_.put(box, whole);
    }
    lanes_.sync();
    return {run, begins && box != kNoBox};
  }

  // After the last scanline: boxes are those of all runs only then.
  CULE_INLINE void finish() {
    end_runs(above_ & ~now_, line_above_);
    end_runs(now_, line_);
    above_ = 0;
  }

  // How many boxes have begun, or joined others.
  CULE_INLINE int count() const { return count_; }
  CULE_INLINE int left_out() const { return left_out_; }
  // Whether there was room for all boxes, and for all runs that later ones could touch. What was
  // left out otherwise depends on which scanlines and objects were said to be like those above.
  CULE_INLINE bool is_complete() const { return !full_ && !crowded_; }
  // Of the last scanline, and since the first one: whether boxes ended above any, and how many runs
  // there were at once.
  CULE_INLINE int line() const { return line_; }
  CULE_INLINE int line_gap() const { return line_gap_; }
  CULE_INLINE bool was_cut() const { return was_cut_; }
  CULE_INLINE int most_runs() const { return most_runs_; }
  // The runs that those of the next scanlines may touch, after `finish`.
  CULE_INLINE RunSet last_runs() const {
    const int oldest = line_ - line_gap_;
    return those(live_, [&](int run) CULE_INLINE_LAMBDA { return runs_.line_of(run) >= oldest; });
  }
  // Calls `take(run)` for each run of a set; a lane does it for each.
  template <class Take>
  CULE_INLINE void divide(RunSet runs, const Take& take) const {
    if constexpr (kAlone) {
      for_each(runs, take);
    } else {
      const int low = lanes_.lane(), high = low + Lanes::kCount;
      if (runs >> low & 1) take(low);
      if (runs >> high & 1) take(high);
    }
  }

 private:
  using Set = RunSet;
  static constexpr bool kAlone = Lanes::kCount == 1;
  static_assert(kAlone || 2 * Lanes::kCount == kMostLiveRuns, "a lane has two runs");
  static constexpr int kObjects = static_cast<int>(kNumTiaObjects), kNoRun = -1;
  static constexpr int kMostLeftOut = 0x7FFF, kClassBits = 3;
  static constexpr uint32_t kClassMask = (1u << kClassBits) - 1;
  static constexpr uint64_t kMembersMask = (1u << kObjects) - 1;

  const int16_t* settings_;
  int line_gap_, one_color_classes_;
  uint32_t classes_ = 0;  // of the objects
  uint64_t members_ = 0;  // of each class the objects, kObjects bits
  Boxes boxes_;
  LiveRuns& runs_;
  Lanes lanes_;
  // The runs that one of this scanline may belong to; of these, those of this scanline, which is
  // not written down in them yet, and those of the scanline above, some of which may be of this
  // one, too; and those that have ever been live.
  Set live_ = 0, now_ = 0, above_ = 0, used_ = 0;
  int count_ = 0, left_out_ = 0;
  bool full_ = false, crowded_ = false, was_cut_ = false;
  int joined_ = 0;     // how many boxes have become parts of others, so that there is room for more
  int most_runs_ = 0;  // that were live at once
  int line_ = kNoLine, line_above_ = kNoLine;

  // Calls `take(run)` for each run of a set, in all lanes.
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
  // The runs of a set for which `test(run)` is true.
  template <class Test>
  CULE_INLINE Set those(Set runs, const Test& test) const {
    if constexpr (kAlone) {
      Set found = 0;
      for_each(runs, [&](int run) CULE_INLINE_LAMBDA {
        if (test(run)) found |= bit(run);
      });
      return found;
    } else {
      const int low = lanes_.lane(), high = low + Lanes::kCount;
      Set found = lanes_.ballot((runs >> low & 1) && test(low));
      if (runs >> Lanes::kCount)
        found |= Set{lanes_.ballot((runs >> high & 1) && test(high))} << Lanes::kCount;
      return found;
    }
  }
  static CULE_INLINE Set bit(int run) { return Set{1} << run; }

  CULE_INLINE void clear_sets() const {
    if constexpr (kAlone) {
      for (int object = 0; object < kObjects; ++object) runs_.sets[object] = 0;
    }
  }
  CULE_INLINE Set of_object(Set runs, uint32_t object) const {
    if constexpr (kAlone) {
      return runs & runs_.sets[object];
    } else {
      return those(runs, [&](int run) CULE_INLINE_LAMBDA {
        return runs_.looks_of(run).object() == object;
      });
    }
  }
  // The live runs of the objects of a class, or more.
  CULE_INLINE Set may_touch(int of_class) const {
    if constexpr (kAlone) {
      Set runs = 0;
      uint32_t objects = static_cast<uint32_t>(members_ >> (kObjects * of_class) & kMembersMask);
      for (; objects; objects &= objects - 1) runs |= runs_.sets[first_bit(objects)];
      return live_ & runs;
    } else {
      return live_;
    }
  }
  // The run of this scanline and object that goes on at `begin`, as the pieces of a scanline may
  // divide a run; or kNoRun.
  CULE_INLINE int part_of_same(uint32_t object, uint32_t color, int begin) const {
    const int gap = gap_of(settings_, object);
    const Set found = those(now_, [&](int run) CULE_INLINE_LAMBDA {
      const RunLooks looks = runs_.looks_of(run);
      return looks.object() == object && looks.color() == color && begin - looks.end() < gap;
    });
    return found ? first_bit(found) : kNoRun;
  }

  // A place for a run of an object, of which there is one.
  CULE_INLINE int new_run(uint32_t object) {
    const int run = first_bit(~live_);
    if constexpr (kAlone) {
      if (used_ & bit(run)) runs_.sets[runs_.looks_of(run).object()] &= ~bit(run);
      runs_.sets[object] |= bit(run);
      used_ |= bit(run);
    }
    live_ |= bit(run);
    const int count = count_bits(live_);
    most_runs_ = count > most_runs_ ? count : most_runs_;
    return run;
  }

  // Writes down that the last scanline of these runs was `line`.
  CULE_INLINE void end_runs(Set runs, int line) {
    if (runs == 0) return;
    lanes_.sync();  // all have read what there was
    // Lanes may have runs of the same box, and then write the same.
    divide(runs, [&](int run) CULE_INLINE_LAMBDA {
      const int box = runs_.box_of(run);
      runs_.places[run] = Run::place_of(line, box);
      if (box != kNoBox) boxes_.put(box, boxes_.box(box).until(line));
    });
    lanes_.sync();
  }

  // The runs of the line above, in new boxes, in the order in which a RunFinder finds them.
  CULE_INLINE void begin_again(int line) {
    finish();
    const int count = count_bits(now_);
    lanes_.sync();
    if (lanes_.lane() == 0) sort(now_);
    lanes_.sync();
    line_ = line;
    was_cut_ = true;
    live_ = now_ = used_ = 0;
    clear_sets();
    for (int i = 0; i < count; ++i) {
      const RunLooks run = runs_.looks_of(i);
      add_run(run.object(), run.color(), run.begin(), run.end(), false);
    }
  }
  // Puts runs into the first places.
  CULE_INLINE void sort(Set runs) const {
    int count = 0;
    for_each(runs, [&](int its) CULE_INLINE_LAMBDA {
      const RunLooks run = runs_.looks_of(its);
      int at = count++;
      for (; at > 0 && is_found_before(run, runs_.looks_of(at - 1)); --at)
        runs_.looks[at] = runs_.looks[at - 1];
      runs_.looks[at] = run.word;
    });
  }
  static CULE_INLINE bool is_found_before(RunLooks one, RunLooks its) {
    return one.object() != its.object() ? one.object() < its.object() : one.begin() < its.begin();
  }

  // Makes that of two boxes which began later a part of the other one. Returns the other one.
  CULE_INLINE int join(int one, int other) {
    const int box = one < other ? one : other, part = one < other ? other : one;
    ++joined_;
    const Box whole = boxes_.box(box).with(boxes_.box(part));
    const Set its = those(live_, [&](int run) CULE_INLINE_LAMBDA {
      return runs_.box_of(run) == part;
    });
    lanes_.sync();  // all have read what there was
    if (lanes_.lane() == 0) {
      boxes_.put(box, whole);
      boxes_.put(part, Box::part_of(box));
    }
    divide(its, [&](int run) CULE_INLINE_LAMBDA {
      runs_.places[run] = Run::place_of(runs_.line_of(run), box);
    });
    lanes_.sync();
    return box;
  }
  // Room for a box: at the end, or where one has become a part of another.
  CULE_INLINE int new_box() {
    if (count_ < boxes_.room) return count_++;
    full_ = true;
    if (joined_ == 0) return kNoBox;
    --joined_;
    int box = 0;
    while (!boxes_.box(box).is_part()) ++box;
    return box;
  }
};

// Completes a frame's boxes, of which `put` has written some. `box_of(i)` are `count` boxes and
// parts of others.
template <class Lanes, class BoxOf>
CULE_INLINE void complete_boxes(const FrameBoxes& boxes, int count, int left_out,
                                const Lanes& lanes, const BoxOf& box_of) {
  const int kept = keep_items<Box>(
      lanes, count,
      [&](int i, Box& box) CULE_INLINE_LAMBDA {
        box = box_of(i);
        return !box.is_part();
      },
      [&](int i, Box box) CULE_INLINE_LAMBDA {
        int16_t* row = boxes.at(i);
        box.to_row(row);
        row[kWidth] = static_cast<int16_t>(row[kWidth] - row[kX]);
        row[kHeight] = static_cast<int16_t>(row[kHeight] - row[kY]);
      });
  if (lanes.lane() == 0) {
    boxes.count() = static_cast<int16_t>(kept);
    boxes.left_out() = static_cast<int16_t>(left_out);
  }
  lanes.sync();
}

// Joins the runs of a whole frame, in one thread.
class FrameMerger : public BoxMerger<FrameBoxes, OneLane> {
 public:
  // Puts what it finds into `boxes`, which `finish` completes, and works in `runs`.
  CULE_INLINE FrameMerger(const int16_t* settings, const FrameBoxes& boxes, LiveRuns& runs)
      : BoxMerger(settings, boxes, runs, OneLane{}), boxes_(boxes) {}

  CULE_HD void finish() {
    BoxMerger::finish();
    complete_boxes(boxes_, count(), left_out(), OneLane{},
                   [&](int i) CULE_INLINE_LAMBDA { return boxes_.box(i); });
  }

 private:
  FrameBoxes boxes_;
};

// Finds the boxes of a frame in one thread. It is told of the frame as a RunFinder is.
class BoxFinder : LiveRuns, public RunFinder<FrameMerger> {
 public:
  // Puts what it finds into `boxes`.
  CULE_INLINE BoxFinder(const int16_t* settings, const FrameBoxes& boxes)
      : RunFinder(settings, FrameMerger(settings, boxes, *this)) {}
  BoxFinder(const BoxFinder&) = delete;
  BoxFinder& operator=(const BoxFinder&) = delete;
};

}  // namespace cule
