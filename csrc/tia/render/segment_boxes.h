// Boxes of a frame whose segments are looked at side by side: a warp for each finds the boxes of
// its segment (segment_runs.h), and then those that touch across segments are joined. The result is
// the same as that of one thread that is told of the whole frame (box_finder.h).
#pragma once

#include "tia/render/box_finder.h"
#include "tia/render/segment_runs.h"

namespace cule {

// What is known of a segment, in kSegmentBoxWords: two words of numbers; its boxes; its last runs,
// which those of the next segment may touch; and from the end backwards its first runs, which may
// touch those of the segments before.
class SegmentBoxes {
 public:
  explicit CULE_INLINE SegmentBoxes(uint32_t* words)
      : words_(words), items_(reinterpret_cast<Run*>(words)) {}

  CULE_INLINE bool is_complete() const { return words_[0] != kIncomplete; }
  CULE_INLINE int num_first() const { return static_cast<int>(words_[0] & 0xFF); }
  CULE_INLINE int num_last() const { return static_cast<int>(words_[0] >> 8 & 0xFF); }
  CULE_INLINE int num_boxes() const { return static_cast<int>(words_[0] >> 16 & 0xFF); }
  // Its last scanline, or kNoLine; and how many boxes one thread would have begun, of which some
  // became parts of others.
  CULE_INLINE int line() const { return static_cast<int16_t>(words_[1]); }
  CULE_INLINE int num_begun() const { return static_cast<int>(words_[1] >> 16); }
  CULE_INLINE Box box(int i) const {
    const Run item = items_[1 + i];
    return {item.looks.word, item.place};
  }
  CULE_INLINE Run last(int i) const { return items_[1 + num_boxes() + i]; }
  // With the box, and whether it begins that in one thread.
  CULE_INLINE Run first(int i) const { return items_[kItems - 1 - i]; }
  CULE_INLINE static int box_of_first(const Run& run) { return run.box() & ~kBegins; }
  CULE_INLINE static bool begins(const Run& run) { return run.box() & kBegins; }

  // Finds the boxes of a log's runs; the lanes do it together. If there is too little room, they
  // are not complete then.
  template <class Lanes>
  CULE_INLINE void find(const int16_t* settings, const uint32_t* log, SegmentRoom& room,
                        const Lanes& lanes) {
    SegmentRuns<Lanes> runs(settings, room, lanes);
    const bool complete = runs.read(log) && runs.join() && write(settings, runs, lanes);
    if (lanes.lane() == 0 && !complete) words_[0] = kIncomplete;
  }

 private:
  static constexpr uint32_t kIncomplete = ~0u;
  static constexpr int kItems = kSegmentBoxWords / 2, kBegins = 1 << 14;
  uint32_t* words_;
  Run* items_;

  // False: there is too little room.
  template <class Lanes>
  CULE_INLINE bool write(const int16_t* settings, SegmentRuns<Lanes>& runs, const Lanes& lanes) {
    const int count = runs.number_boxes(), line = runs.last_line();
    const int first_until = runs.first_line() + settings[kLineGap];
    const int last_from = oldest_for(settings, line + 1);
    const auto item = [&](int i, int of_line) CULE_INLINE_LAMBDA {
      return Run{runs.looks_of(i), Run::place_of(of_line, runs.box_of(i))};
    };
    int room = kItems - 1 - count;
    if (room < 0) return false;
    const int num_first = keep_items<Run>(
        lanes, runs.count(),
        [&](int i, Run& run) CULE_INLINE_LAMBDA {
          const int its = runs.first_of(i);
          if (its > first_until) return false;
          run = item(i, its);
          if (runs.begins(i)) run.place |= static_cast<uint32_t>(kBegins) << 16;
          return true;
        },
        [&](int i, const Run& run) CULE_INLINE_LAMBDA {
          if (i < room) items_[kItems - 1 - i] = run;
        });
    room -= num_first;
    const int num_last = keep_items<Run>(
        lanes, runs.count(),
        [&](int i, Run& run) CULE_INLINE_LAMBDA {
          if (runs.last_of(i) < last_from) return false;
          run = item(i, runs.last_of(i));
          return true;
        },
        [&](int i, const Run& run) CULE_INLINE_LAMBDA {
          if (i < room) items_[1 + count + i] = run;
        });
    if (num_last > room) return false;
    for (int i = lanes.lane(); i < count; i += Lanes::kCount) {
      const Box box = runs.box(i);
      items_[1 + i] = {RunLooks{box.across}, box.down};
    }
    if (lanes.lane() != 0) return true;
    words_[0] = static_cast<uint32_t>(num_first | num_last << 8 | count << 16);
    words_[1] = static_cast<uint16_t>(line) | static_cast<uint32_t>(runs.num_begun()) << 16;
    return true;
  }
};

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
    if (count_ + count > FrameRoom::kMostBoxes) return false;
    for (int i = lanes_.lane(); i < count; i += Lanes::kCount) boxes_[count_ + i] = segment.box(i);
    lanes_.sync();
    begun_ += segment.num_begun();
    const int num_first = num_runs_ ? segment.num_first() : 0;
    for (int i = 0; i < num_first; ++i) {
      if (touch(segment.first(i)) + i + 1 > kMostLiveRuns) return false;
    }
    if (!keep_last(segment)) return false;
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
  static constexpr Run kEnded{{0}, static_cast<uint16_t>(kNoLine)};
  const int16_t* settings_;
  Box* boxes_;
  Run* runs_;  // those of the segments so far that later ones may touch
  Lanes lanes_;
  // How many boxes there are, with parts of others, and how many would have begun in one thread.
  int count_ = 0, begun_ = 0;
  int num_runs_ = 0;

  // Joins the boxes that one of a segment's first runs touches. Returns how many runs of the
  // segments before it one thread would still have then.
  CULE_INLINE int touch(const Run& first) {
    const uint32_t same_bits = Run::same_bits(settings_[kOneColorClasses], first.looks.of_class());
    const int oldest = oldest_for(settings_, first.line());
    int box = whole_of(count_ + SegmentBoxes::box_of_first(first));
    bool touched = false;
    int live = 0;
    for (int base = 0; base < num_runs_; base += Lanes::kCount) {
      const int i = base + lanes_.lane();
      const Run run = i < num_runs_ ? runs_[i] : kEnded;
      const bool is_live = run.line() >= oldest;
      const bool touches = is_live && run.looks.touches(first.looks, same_bits);
      for (uint32_t found = lanes_.ballot(touches); found; found &= found - 1) {
        const int its = whole_of(runs_[base + first_bit(found)].box());
        if (its != box) box = join(box, its);
        touched = true;
      }
      // In one thread a run that looks the same is this one. Whatever touches it touches this, too.
      const bool is_same = touches && run.looks.word == first.looks.word;
      live += count_bits(lanes_.ballot(is_live && !is_same));
      lanes_.sync();  // all have read theirs
      if (is_same) runs_[i] = kEnded;
      lanes_.sync();
    }
    begun_ -= touched && SegmentBoxes::begins(first);
    return live;
  }

  // False: there is too little room for the runs.
  CULE_INLINE bool keep_last(const SegmentBoxes& segment) {
    const int oldest = oldest_for(settings_, segment.line() + 1);
    num_runs_ = keep_items<Run>(
        lanes_, num_runs_,
        [&](int i, Run& run) CULE_INLINE_LAMBDA {
          run = runs_[i];
          return run.line() >= oldest;
        },
        [&](int i, const Run& run) CULE_INLINE_LAMBDA { runs_[i] = run; });
    const int num_last = segment.num_last();
    if (num_runs_ + num_last > kMostLiveRuns) return false;
    for (int i = lanes_.lane(); i < num_last; i += Lanes::kCount) {
      const Run run = segment.last(i);
      runs_[num_runs_ + i] = {run.looks, Run::place_of(run.line(), count_ + run.box())};
    }
    num_runs_ += num_last;
    lanes_.sync();
    return true;
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
