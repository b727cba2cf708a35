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
// `box` and `put`, as FrameBoxes.
template <class Boxes>
class BoxMerger {
 public:
  static constexpr int kNoBox = -1;

  // Puts what it finds into `boxes`, and works in `runs`, which has room for `most_runs`.
  CULE_INLINE BoxMerger(const int16_t* settings, const Boxes& boxes, Run* runs, int most_runs)
      : settings_(settings), boxes_(boxes), runs_(runs), room_(most_runs) {
    for (int object = 0; object < static_cast<int>(kNumTiaObjects); ++object)
      classes_ |= static_cast<uint32_t>(settings[kClassOf + object]) << (kClassBits * object);
  }

  CULE_INLINE void repeat_line(int line) { repeat_lines(line, line); }
  // Scanlines from `first` to `last` are like the one above.
  CULE_INLINE void repeat_lines(int first, int last) {
    for (int line = has_cuts(settings_) ? first : last; line <= last; ++line) {
      if (is_cut(settings_, line)) {
        begin_again(line);
        continue;
      }
      const int above = line_;
      go_on_with(line, [=](const Run& run) CULE_INLINE_LAMBDA { return run.line() == above; });
      line_ = line;
    }
  }

  CULE_INLINE void begin_line(int line) {
    const bool cut = is_cut(settings_, line);
    above_ = cut ? kNoLine : line_;
    line_ = line;
    was_cut_ |= cut;
    const int oldest = line - 1 - settings_[kLineGap];
    if (cut) num_runs_ = 0;
    else keep_runs([=](const Run& run) CULE_INLINE_LAMBDA { return run.line() >= oldest; });
  }

  CULE_INLINE void repeat_object(uint32_t object) {
    const int above = above_;
    go_on_with(line_, [=](const Run& run) CULE_INLINE_LAMBDA {
      return run.looks.object() == object && run.line() == above;
    });
  }

  struct Added {
    Run run;
    bool begins;  // whether it begins a box
  };
  // Puts a run into the box that it belongs to. If it joins several, they become one. A run that
  // has found no room is left out until it ends, whether it is told again or not. A run of a piece
  // may go on with one of the piece before.
  CULE_INLINE Added add_run(uint32_t object, uint32_t color, int begin, int end, bool of_piece) {
    const int of_class = static_cast<int>(classes_ >> (kClassBits * object) & kClassMask);
    const uint32_t same_bits = Run::same_bits(settings_, of_class);
    int same = of_piece ? part_of_same(object, color, begin) : num_runs_, box = kNoBox;
    const bool is_part = same < num_runs_;
    if (is_part) begin = runs_[same].looks.begin();
    const RunLooks looks = RunLooks::of(object, of_class, color, begin, end);
    for (int i = 0; i < num_runs_; ++i) {
      const Run run = runs_[i];
      if (!run.touches(looks, same_bits)) continue;
      if (run.looks.word == looks.word && same == num_runs_) same = i;
      const int its = run.box();
      if (its == kNoBox || its == box) continue;
      box = box == kNoBox ? its : join(box, its);
    }
    const bool stays_out = !is_part && same < num_runs_ && runs_[same].box() == kNoBox;
    const bool has_room = same < room_, begins = box == kNoBox && !stays_out && has_room;
    crowded_ |= !has_room;
    if (begins) box = new_box();
    if (stays_out) box = kNoBox;
    else if ((box == kNoBox || !has_room) && left_out_ < kMostLeftOut) ++left_out_;
    const Run run{looks, Run::place_of(line_, box)};
    if (!has_room) return {run, false};
    runs_[same] = run;
    if (same == num_runs_) most_runs_ = ++num_runs_ > most_runs_ ? num_runs_ : most_runs_;
    if (box == kNoBox) return {run, false};
    const Box now = Box::of(looks, line_);
    boxes_.put(box, begins ? now : boxes_.box(box).with(now));
    return {run, begins};
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
  CULE_INLINE bool was_cut() const { return was_cut_; }
  CULE_INLINE int most_runs() const { return most_runs_; }
  // Runs that those of the next scanlines may touch, of which some may be too old.
  CULE_INLINE int num_runs() const { return num_runs_; }
  CULE_INLINE const Run& run(int i) const { return runs_[i]; }

 private:
  static constexpr int kMostLeftOut = 0x7FFF, kClassBits = 3;
  static constexpr uint32_t kClassMask = (1u << kClassBits) - 1;

  const int16_t* settings_;
  uint32_t classes_ = 0;  // of the objects
  Boxes boxes_;
  Run* runs_;
  int room_;
  int count_ = 0, left_out_ = 0;
  bool full_ = false, crowded_ = false, was_cut_ = false;
  int joined_ = 0;    // how many boxes have become parts of others, so that there is room for more
  int num_runs_ = 0, most_runs_ = 0;  // those that a run of this scanline may belong to
  int line_ = kNoLine, above_ = kNoLine;

  // The run of this scanline and object that goes on at `begin`, as the pieces of a scanline may
  // divide a run; or num_runs_.
  CULE_INLINE int part_of_same(uint32_t object, uint32_t color, int begin) const {
    const int gap = gap_of(settings_, object);
    int i = 0;
    for (; i < num_runs_; ++i) {
      const Run run = runs_[i];
      if (run.line() == line_ && run.looks.object() == object && run.looks.color() == color &&
          begin - run.looks.end() < gap)
        break;
    }
    return i;
  }

  // The live runs that `goes_on` chooses go on at scanline `line`.
  template <class Test>
  CULE_INLINE void go_on_with(int line, const Test& goes_on) {
    for (int i = 0; i < num_runs_; ++i) {
      const Run run = runs_[i];
      if (!goes_on(run)) continue;
      const int box = run.box();
      runs_[i].place = Run::place_of(line, box);
      if (box != kNoBox) boxes_.put(box, boxes_.box(box).until(line));
    }
  }

  // Forgets the live runs that `keeps` does not choose.
  template <class Test>
  CULE_INLINE void keep_runs(const Test& keeps) {
    int kept = 0;
    for (int i = 0; i < num_runs_; ++i) {
      const Run run = runs_[i];
      if (keeps(run)) runs_[kept++] = run;
    }
    num_runs_ = kept;
  }

  // The runs of the line above, in new boxes, in the order in which a RunFinder finds them.
  CULE_INLINE void begin_again(int line) {
    const int above = line_;
    keep_runs([=](const Run& run) CULE_INLINE_LAMBDA { return run.line() == above; });
    const int count = num_runs_;
    sort(count);
    line_ = line;
    was_cut_ = true;
    num_runs_ = 0;
    for (int i = 0; i < count; ++i) {
      const RunLooks run = runs_[i].looks;
      add_run(run.object(), run.color(), run.begin(), run.end(), false);
    }
  }
  CULE_INLINE void sort(int count) {
    for (int i = 1; i < count; ++i) {
      const Run run = runs_[i];
      int at = i;
      for (; at > 0 && is_found_before(run, runs_[at - 1]); --at) runs_[at] = runs_[at - 1];
      runs_[at] = run;
    }
  }
  static CULE_INLINE bool is_found_before(const Run& run, const Run& other) {
    const RunLooks one = run.looks, its = other.looks;
    return one.object() != its.object() ? one.object() < its.object() : one.begin() < its.begin();
  }

  // Makes that of two boxes which began later a part of the other one. Returns the other one.
  CULE_INLINE int join(int one, int other) {
    const int box = one < other ? one : other, part = one < other ? other : one;
    ++joined_;
    boxes_.put(box, boxes_.box(box).with(boxes_.box(part)));
    boxes_.put(part, Box::part_of(box));
    for (int i = 0; i < num_runs_; ++i) {
      if (runs_[i].box() == part) runs_[i].place = Run::place_of(runs_[i].line(), box);
    }
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
class FrameMerger : public BoxMerger<FrameBoxes> {
 public:
  // Puts what it finds into `boxes`, which `finish` completes. `live` is room to work in.
  CULE_INLINE FrameMerger(const int16_t* settings, const FrameBoxes& boxes, LiveRuns& live)
      : BoxMerger(settings, boxes, live.runs, LiveRuns::kMost), boxes_(boxes) {}

  CULE_HD void finish() {
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
