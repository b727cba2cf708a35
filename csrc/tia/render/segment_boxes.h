// Boxes of a frame whose segments are looked at side by side: a warp for each finds the boxes of its
// segment from a log of runs (run_log.h), and then those that touch across segments are joined. The
// result is the same as that of one thread that is told of the whole frame (box_finder.h).
#pragma once

#include "tia/render/box_finder.h"
#include "tia/render/run_log.h"

namespace cule {

struct SegmentRoom;

// What is known of a segment, in kSegmentBoxWords: two words of numbers; its boxes, with those that
// became parts of others; its last runs, which those of the next segment may touch; and from the
// end backwards its first runs, which may touch those of the segments before.
class SegmentBoxes {
 public:
  static constexpr int kMostBoxes = 96;

  explicit CULE_INLINE SegmentBoxes(uint32_t* words)
      : words_(words), items_(reinterpret_cast<Run*>(words)) {}

  CULE_INLINE bool is_complete() const { return words_[0] != kIncomplete; }
  CULE_INLINE int num_first() const { return static_cast<int>(words_[0] & 0xFF); }
  CULE_INLINE int num_last() const { return static_cast<int>(words_[0] >> 8 & 0xFF); }
  CULE_INLINE int num_boxes() const { return static_cast<int>(words_[0] >> 16 & 0xFF); }
  CULE_INLINE bool was_cut() const { return words_[0] >> 24; }
  // Its last scanline, or kNoLine, and how many runs there were at once.
  CULE_INLINE int line() const { return static_cast<int16_t>(words_[1]); }
  CULE_INLINE int most_runs() const { return static_cast<int>(words_[1] >> 16); }
  CULE_INLINE Box box(int i) const {
    const Run item = items_[1 + i];
    return {item.looks.word, item.place};
  }
  CULE_INLINE Run last(int i) const { return items_[1 + num_boxes() + i]; }
  // With the box, and whether it begins that.
  CULE_INLINE Run first(int i) const { return items_[kItems - 1 - i]; }
  CULE_INLINE static int box_of_first(const Run& run) { return run.box() & ~kBegins; }
  CULE_INLINE static bool begins(const Run& run) { return run.box() & kBegins; }

  // Finds the boxes of a log's runs; the lanes do it together. If there is too little room, they are
  // not complete then.
  template <class Lanes>
  CULE_INLINE void find(const int16_t* settings, const uint32_t* log, SegmentRoom& room,
                        const Lanes& lanes);

 private:
  template <class Lanes>
  friend class SegmentMerger;
  static constexpr uint32_t kIncomplete = ~0u;
  static constexpr int kItems = kSegmentBoxWords / 2, kBegins = 1 << 14;
  uint32_t* words_;
  Run* items_;
};

// Room to find the boxes of a segment in.
struct SegmentRoom : LiveRuns {
  Box boxes[SegmentBoxes::kMostBoxes];
};
struct PackedBoxes {
  Box* boxes;
  int room;

  CULE_INLINE Box box(int i) const { return boxes[i]; }
  CULE_INLINE void put(int i, Box box) const { boxes[i] = box; }
};

// Joins the runs of a segment's log, and writes down its first ones.
template <class Lanes>
class SegmentMerger : public BoxMerger<PackedBoxes, Lanes> {
 public:
  using Base = BoxMerger<PackedBoxes, Lanes>;

  CULE_INLINE SegmentMerger(const int16_t* settings, uint32_t* words, SegmentRoom& room,
                            const Lanes& lanes)
      : Base(settings, {room.boxes, SegmentBoxes::kMostBoxes}, room, lanes),
        items_(reinterpret_cast<Run*>(words)),
        writes_(lanes.lane() == 0) {}

  CULE_INLINE void begin_line(int line) {
    if (last_first_ == kNoLine) last_first_ = line + this->line_gap();
    Base::begin_line(line);
  }
  CULE_INLINE void add_run(uint32_t object, uint32_t color, int begin, int end, bool of_piece) {
    const auto added = Base::add_run(object, color, begin, end, of_piece);
    if (this->was_cut() || this->line() > last_first_) return;
    if (num_first_ < kRoom && writes_) {
      Run run = added.run;
      if (added.begins) run.place |= static_cast<uint32_t>(SegmentBoxes::kBegins) << 16;
      items_[SegmentBoxes::kItems - 1 - num_first_] = run;
    }
    ++num_first_;
  }
  CULE_INLINE int num_first() const { return num_first_; }
  CULE_INLINE bool is_complete() const { return Base::is_complete() && num_first_ <= kRoom; }

 private:
  static constexpr int kRoom = SegmentBoxes::kItems - 1;  // for first runs
  Run* items_;
  bool writes_;  // one of the lanes does
  int num_first_ = 0, last_first_ = kNoLine;  // up to that scanline they may touch earlier ones
};

template <class Lanes>
CULE_INLINE void SegmentBoxes::find(const int16_t* settings, const uint32_t* log,
                                    SegmentRoom& room, const Lanes& lanes) {
  const bool writes = lanes.lane() == 0;
  if (!cule::is_complete(log)) {
    if (writes) words_[0] = kIncomplete;
    return;
  }
  SegmentMerger<Lanes> merger(settings, words_, room, lanes);
  read_runs(log, merger);
  merger.finish();
  const RunSet last = merger.last_runs();
  const int count = merger.count(), num_last = count_bits(last), num_first = merger.num_first();
  const bool complete = merger.is_complete() && 1 + count + num_last <= kItems - num_first;
  if (complete) {
    for (int i = lanes.lane(); i < count; i += Lanes::kCount)
      items_[1 + i] = {RunLooks{room.boxes[i].across}, room.boxes[i].down};
    merger.divide(last, [&](int run) CULE_INLINE_LAMBDA {
      items_[1 + count + count_bits(last & ((RunSet{1} << run) - 1))] = room.at(run);
    });
  }
  if (!writes) return;
  words_[1] = static_cast<uint16_t>(merger.line()) |
              static_cast<uint32_t>(merger.most_runs()) << 16;
  words_[0] = complete ? static_cast<uint32_t>(num_first | num_last << 8 | count << 16 |
                                               merger.was_cut() << 24)
                       : kIncomplete;
}

// Room to join the segments of a frame in.
struct FrameRoom {
  static constexpr int kMostBoxes = 512;
  Box boxes[kMostBoxes];  // of all segments
  Run runs[kMostLiveRuns];
};

// Joins the boxes of a frame's segments, of which it is told from top to bottom. All lanes of a
// kind of Lanes (common/lanes.h) call its functions together.
template <class Lanes>
class SegmentJoiner {
 public:
  CULE_INLINE SegmentJoiner(const int16_t* settings, FrameRoom& room, const Lanes& lanes)
      : settings_(settings), boxes_(room.boxes), runs_(room.runs), lanes_(lanes) {}

  // False: there is too little room for the frame, or may be for one thread that is told of it.
  CULE_INLINE bool add(const SegmentBoxes& segment) {
    if (!segment.is_complete()) return false;
    if (segment.line() == kNoLine) return true;
    const int count = segment.num_boxes();
    if (count_ + count > FrameRoom::kMostBoxes ||
        num_runs_ + segment.most_runs() > kMostLiveRuns)
      return false;
    for (int i = lanes_.lane(); i < count; i += Lanes::kCount) {
      const Box box = segment.box(i);
      boxes_[count_ + i] = box.is_part() ? Box::part_of(count_ + box.whole()) : box;
    }
    lanes_.sync();
    begun_ += count;
    const int num_first = num_runs_ ? segment.num_first() : 0;
    for (int i = 0; i < num_first; ++i) touch(segment.first(i));
    keep_last(segment);
    count_ += count;
    return true;
  }

  // Writes them to `boxes`. False: there are too many.
  CULE_INLINE bool finish(const FrameBoxes& boxes) const {
    if (begun_ > boxes.room) return false;
    complete_boxes(boxes, count_, 0, lanes_,
                   [this](int i) CULE_INLINE_LAMBDA { return boxes_[i]; });
    return true;
  }

 private:
  const int16_t* settings_;
  Box* boxes_;
  Run* runs_;  // those of the segments so far that later ones may touch
  Lanes lanes_;
  // How many boxes there are, with parts of others, and how many would have begun in one thread.
  int count_ = 0, begun_ = 0;
  int num_runs_ = 0;

  // Joins the boxes that one of a segment's first runs touches.
  CULE_INLINE void touch(const Run& first) {
    const uint32_t same_bits = Run::same_bits(settings_[kOneColorClasses], first.looks.of_class());
    const int oldest = first.line() - 1 - settings_[kLineGap];
    int box = whole_of(count_ + SegmentBoxes::box_of_first(first));
    bool touched = false;
    for (int base = 0; base < num_runs_; base += Lanes::kCount) {
      const int i = base + lanes_.lane();
      const bool touches = i < num_runs_ && runs_[i].line() >= oldest &&
                           runs_[i].looks.touches(first.looks, same_bits);
      for (uint32_t found = lanes_.ballot(touches); found; found &= found - 1) {
        const int its = whole_of(runs_[base + first_bit(found)].box());
        if (its != box) box = join(box, its);
        touched = true;
      }
    }
    begun_ -= touched && SegmentBoxes::begins(first);
  }

  CULE_INLINE void keep_last(const SegmentBoxes& segment) {
    const int oldest = segment.line() - settings_[kLineGap];
    num_runs_ = keep_items<Run>(
        lanes_, num_runs_,
        [&](int i, Run& run) CULE_INLINE_LAMBDA {
          run = runs_[i];
          return !segment.was_cut() && run.line() >= oldest;
        },
        [&](int i, const Run& run) CULE_INLINE_LAMBDA { runs_[i] = run; });
    const int num_last = segment.num_last();
    for (int i = lanes_.lane(); i < num_last; i += Lanes::kCount) {
      const Run run = segment.last(i);
      runs_[num_runs_ + i] = {run.looks, Run::place_of(run.line(), count_ + run.box())};
    }
    num_runs_ += num_last;
    lanes_.sync();
  }

  CULE_INLINE int whole_of(int box) const {
    while (boxes_[box].is_part()) box = boxes_[box].whole();
    return box;
  }
  // Makes that of two boxes which began later a part of the other one. Returns the other one.
  CULE_INLINE int join(int one, int other) {
    const int box = one < other ? one : other, part = one < other ? other : one;
    lanes_.sync();  // all have read both
    if (lanes_.lane() == 0) {
      boxes_[box] = boxes_[box].with(boxes_[part]);
      boxes_[part] = Box::part_of(box);
    }
    lanes_.sync();
    return box;
  }
};

}  // namespace cule
