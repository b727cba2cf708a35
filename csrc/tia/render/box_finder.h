// Finds boxes around the TIA's objects: joins runs (run_finder.h).
//
// Runs of the same class are one box if they touch, also at a corner, or overlap: on the same
// scanline, on neighbouring ones, or over as many scanlines without a run as the settings allow. In
// a class of one color, only runs of the same color do. Boxes are the project's own.
#pragma once

#include "common/lanes.h"
#include "tia/render/run_finder.h"

namespace cule {

// A run of a scanline, which belongs to a box, or to none that had room. A GPU reads and writes it
// at once.
struct alignas(8) Run {
  RunLooks looks;
  uint32_t place;  // the scanline, and the box in the upper half

  static CULE_INLINE uint32_t place_of(int line, int box) {
    return static_cast<uint16_t>(line) | static_cast<uint32_t>(box) << 16;
  }
  CULE_INLINE int line() const { return static_cast<int16_t>(place); }
  CULE_INLINE int box() const { return static_cast<int16_t>(place >> 16); }
};
// Room for those that a run of the next scanline may belong to.
struct LiveRuns {
  static constexpr int kMost = 96;
  Run runs[kMost];
};

// Joins the runs of a frame, of which it is told as RunFinder does. All is inline, as a GPU would
// otherwise have its members in memory. All lanes of a kind of Lanes (common/lanes.h) call its
// functions together; each looks at a part of the live runs.
template <class Lanes>
class BoxMerger {
 public:
  // Puts what it finds into `boxes`, which `finish` completes. `live` is room to work in.
  CULE_INLINE BoxMerger(const int16_t* settings, const FrameBoxes& boxes, LiveRuns& live,
                        const Lanes& lanes)
      : settings_(settings), boxes_(boxes), runs_(live.runs), lanes_(lanes) {
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

  // Puts a run into the box that it belongs to. If it joins several, they become one. A run that
  // has found no room is left out until it ends, whether it is told again or not. A run of a piece
  // may go on with one of the piece before.
  CULE_INLINE void add_run(uint32_t object, uint32_t color, int begin, int end, bool of_piece) {
    const int of_class = static_cast<int>(classes_ >> (kClassBits * object) & kClassMask);
    const bool one_color = settings_[kOneColorClasses] >> of_class & 1;
    int same = num_runs_, box = kNoBox;
    if (of_piece) same = part_of_same(object, color, begin);
    const bool is_part = same < num_runs_;
    if (is_part) begin = runs_[same].looks.begin();
    const RunLooks looks = RunLooks::of(object, of_class, color, begin, end);
    for (int base = 0; base < num_runs_; base += Lanes::kCount) {
      const int i = base + lanes_.lane();
      bool touches = false, alike = false;
      if (i < num_runs_) {
        const Run run = runs_[i];
        alike = run.looks.word == looks.word;
        touches = run.box() != kNoBox && begin <= run.looks.end() && run.looks.begin() <= end &&
                  run.looks.of_class() == of_class && !(one_color && run.looks.color() != color);
      }
      const uint32_t found = lanes_.ballot(alike), touched = lanes_.ballot(touches);
      if (found && same == num_runs_) same = base + first_bit(found);
      if (touched == 0) continue;
      if (box == kNoBox) box = runs_[base + first_bit(touched)].box();
      while (const uint32_t others = lanes_.ballot(touches && runs_[i].box() != box))
        join(box, runs_[base + first_bit(others)].box());
    }
    const bool stays_out = !is_part && same < num_runs_ && runs_[same].box() == kNoBox;
    const bool has_room = same < LiveRuns::kMost, is_new = box == kNoBox && !stays_out;
    crowded_ |= !has_room;
    if (is_new && has_room) box = new_box();
    if (stays_out) box = kNoBox;
    else if ((box == kNoBox || !has_room) && left_out_ < kMostLeftOut) ++left_out_;
    if (!has_room) return;
    lanes_.sync();  // all have read the runs
    if (lanes_.lane() == 0)
      runs_[same] = {looks, Run::place_of(line_, box)};
    if (box != kNoBox) extend(boxes_.at(box), is_new, object, color, begin, end);
    if (same == num_runs_) ++num_runs_;
    lanes_.sync();
  }

  // Whether there were too many live runs. What was left out then depends on which scanlines and
  // objects were said to be like those above.
  CULE_INLINE bool is_crowded() const { return crowded_; }

  // After the frame: the rows then have the boxes' first pixels and sizes.
  CULE_HD void finish() {
    const int kept = keep_items<ObjectRow>(
        lanes_, count_,
        [&](int i, ObjectRow& row) CULE_INLINE_LAMBDA {
          copy_row(row.fields, boxes_.at(i));
          row.fields[kWidth] = static_cast<int16_t>(row.fields[kWidth] - row.fields[kX]);
          row.fields[kHeight] = static_cast<int16_t>(row.fields[kHeight] - row.fields[kY]);
          return row.fields[kVisible] != 0;
        },
        [&](int i, const ObjectRow& row) CULE_INLINE_LAMBDA {
          copy_row(boxes_.at(i), row.fields);
        });
    if (lanes_.lane() == 0) {
      boxes_.count() = static_cast<int16_t>(kept);
      boxes_.left_out() = static_cast<int16_t>(left_out_);
    }
    lanes_.sync();
  }

 private:
  static constexpr int kNoBox = -1, kMostLeftOut = 0x7FFF, kClassBits = 3;
  static constexpr uint32_t kClassMask = (1u << kClassBits) - 1;

  const int16_t* settings_;
  uint32_t classes_ = 0;  // of the objects
  // Until finish, kWidth and kHeight are the ends of boxes, and kVisible says whether it is one.
  FrameBoxes boxes_;
  Run* runs_;
  Lanes lanes_;
  int count_ = 0, left_out_ = 0;
  bool crowded_ = false;
  int joined_ = 0;    // how many boxes have become parts of others, so that their rows are free
  int num_runs_ = 0;  // those that a run of this scanline may belong to
  int line_ = kNoLine, above_ = kNoLine;

  // The run of this scanline and object that goes on at `begin`, as the pieces of a scanline may
  // divide a run; or num_runs_.
  CULE_INLINE int part_of_same(uint32_t object, uint32_t color, int begin) const {
    const int gap = gap_of(settings_, object);
    return first_where(lanes_, 0, num_runs_, [&](int i) CULE_INLINE_LAMBDA {
      const Run run = runs_[i];
      return run.line() == line_ && run.looks.object() == object && run.looks.color() == color &&
             begin - run.looks.end() < gap;
    });
  }

  // The live runs that `goes_on` chooses go on at scanline `line`.
  template <class Test>
  CULE_INLINE void go_on_with(int line, const Test& goes_on) {
    for (int i = lanes_.lane(); i < num_runs_; i += Lanes::kCount) {
      const Run run = runs_[i];
      if (!goes_on(run)) continue;
      runs_[i].place = Run::place_of(line, run.box());
      if (run.box() != kNoBox) boxes_.at(run.box())[kHeight] = static_cast<int16_t>(line + 1);
    }
    lanes_.sync();
  }

  // Forgets the live runs that `keeps` does not choose.
  template <class Test>
  CULE_INLINE void keep_runs(const Test& keeps) {
    num_runs_ = keep_items<Run>(
        lanes_, num_runs_,
        [&](int i, Run& run) CULE_INLINE_LAMBDA {
          run = runs_[i];
          return keeps(run);
        },
        [&](int i, const Run& run) CULE_INLINE_LAMBDA { runs_[i] = run; });
  }

  // The runs of the line above, in new boxes, in the order in which a RunFinder finds them.
  CULE_INLINE void begin_again(int line) {
    const int above = line_;
    keep_runs([=](const Run& run) CULE_INLINE_LAMBDA { return run.line() == above; });
    const int count = num_runs_;
    if (lanes_.lane() == 0) sort(count);
    lanes_.sync();
    line_ = line;
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

  // Makes `box` contain a run of this scanline, too, or that alone if it is new. A lane for each
  // field. A box keeps its color.
  CULE_INLINE void extend(int16_t* box, bool is_new, uint32_t object, uint32_t color, int begin,
                          int end) const {
    for (int field = lanes_.lane(); field < kObjectFields; field += Lanes::kCount) {
      const int now = field == kKind ? 1 << object
                      : field == kX  ? begin
                      : field == kY  ? line_
                      : field == kWidth  ? end
                      : field == kHeight ? line_ + 1
                      : field == kColor  ? static_cast<int>(color)
                                         : 1;
      const int before = is_new ? now : box[field];
      const int least = now < before ? now : before, most = now < before ? before : now;
      const int united = field == kKind ? before | now
                         : field == kX || field == kY ? least
                         : field == kWidth || field == kHeight ? most
                                                               : before;
      box[field] = static_cast<int16_t>(united);
    }
  }
  // Makes `box` contain another one, too.
  static CULE_INLINE void unite(int16_t* box, const int16_t* other) {
    box[kKind] |= other[kKind];
    if (other[kX] < box[kX]) box[kX] = other[kX];
    if (other[kY] < box[kY]) box[kY] = other[kY];
    if (other[kWidth] > box[kWidth]) box[kWidth] = other[kWidth];
    if (other[kHeight] > box[kHeight]) box[kHeight] = other[kHeight];
  }
  CULE_INLINE void join(int box, int other) {
    ++joined_;
    lanes_.sync();  // all have read the runs
    if (lanes_.lane() == 0) {
      unite(boxes_.at(box), boxes_.at(other));
      boxes_.at(other)[kVisible] = 0;
    }
    for (int i = lanes_.lane(); i < num_runs_; i += Lanes::kCount) {
      if (runs_[i].box() == other) runs_[i].place = Run::place_of(runs_[i].line(), box);
    }
    lanes_.sync();
  }
  // Room for a box: at the end, or where one has been joined to another.
  CULE_INLINE int new_box() {
    if (count_ < boxes_.room) return count_++;
    if (joined_ == 0) return kNoBox;
    --joined_;
    int box = 0;
    while (boxes_.at(box)[kVisible]) ++box;
    return box;
  }
};

// Finds the boxes of a frame in one thread. It is told of the frame as a RunFinder is.
class BoxFinder : LiveRuns, public RunFinder<BoxMerger<OneLane>> {
 public:
  // Puts what it finds into `boxes`.
  CULE_INLINE BoxFinder(const int16_t* settings, const FrameBoxes& boxes)
      : RunFinder(settings, BoxMerger<OneLane>(settings, boxes, *this, OneLane{})) {}
  BoxFinder(const BoxFinder&) = delete;
  BoxFinder& operator=(const BoxFinder&) = delete;
};

}  // namespace cule
