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
          if (!runs.is_last(i, last_from)) return false;
          run = item(i, runs.last_of(i));
          return true;
        },
        [&](int i, const Run& run) CULE_INLINE_LAMBDA {
          if (i < room) items_[1 + count + i] = run;
        });
    if (num_last > room) return false;
    runs.find_boxes(count);
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

// Room to join the segments of a frame in: the boxes of all segments, and which of them are one
// (union_find.h); and the runs that those of the next segment may touch.
struct FrameRoom {
  static constexpr int kMostBoxes = 896;
  Box boxes[kMostBoxes];
  uint32_t parents[kMostBoxes];
  Run runs[kMostLiveRuns];
};

// Joins the boxes of a frame's segments, of which it is told from top to bottom. All lanes of a
// kind of Lanes (common/lanes.h) call its functions together.
template <class Lanes>
class SegmentJoiner {
 public:
  CULE_INLINE SegmentJoiner(const int16_t* settings, FrameRoom& room, const Lanes& lanes)
      : settings_(settings), room_(room), lanes_(lanes) {}

  // False: there is too little room for the frame, or may be for one thread that is told of it.
  CULE_INLINE bool add(const SegmentBoxes& segment) {
    if (!segment.is_complete()) return false;
    if (segment.line() == kNoLine) return true;
    const int count = segment.num_boxes();
    if (count_ + count > FrameRoom::kMostBoxes) return false;
    for (int i = lanes_.lane(); i < count; i += Lanes::kCount) {
      room_.boxes[count_ + i] = segment.box(i);
      room_.parents[count_ + i] = static_cast<uint32_t>(count_ + i);
    }
    lanes_.sync();
    begun_ += segment.num_begun();
    if (!join(segment) || !keep_last(segment)) return false;
    count_ += count;
    return true;
  }

  // Writes them to `boxes`. False: one thread would have begun too many.
  CULE_INLINE bool finish(const FrameBoxes& boxes) const {
    if (begun_ > BoxRoom::kMostBoxes) return false;
    find_least(room_.parents, count_, lanes_);
    for (int base = 0; base < count_; base += Lanes::kCount) add_parts(base);
    complete_boxes(boxes, count_, 0, lanes_,
                   [this](int i) CULE_INLINE_LAMBDA { return room_.boxes[i]; });
    return true;
  }

 private:
  const int16_t* settings_;
  FrameRoom& room_;
  Lanes lanes_;
  // How many boxes there are, with parts of others, and how many would have begun in one thread.
  int count_ = 0, begun_ = 0;
  int num_runs_ = 0;

  // Joins boxes where a segment's first runs touch those of segments before it.
  CULE_INLINE bool join(const SegmentBoxes& segment) {
    const int num_first = num_runs_ ? segment.num_first() : 0;
    for (int base = 0; base < num_first; base += Lanes::kCount) {
      const int i = base + lanes_.lane();
      bool began = false;
      if (i < num_first) {
        const Run first = segment.first(i);
        began = touch(first) && SegmentBoxes::begins(first);
      }
      begun_ -= count_bits(lanes_.ballot(began));
    }
    lanes_.sync();
    return num_runs_ + num_first <= kMostLiveRuns || !lanes_.ballot(is_crowded(segment));
  }
  // Joins the boxes that a run touches. Whether there are any.
  CULE_INLINE bool touch(const Run& first) {
    constexpr int kBits = 32;
    const uint32_t same_bits = Run::same_bits(settings_[kOneColorClasses], first.looks.of_class());
    const int oldest = oldest_for(settings_, first.line());
    bool touches = false;
    for (int base = 0; base < num_runs_; base += kBits) {
      uint32_t touched = 0;
      const int end = base + kBits < num_runs_ ? base + kBits : num_runs_;
      for (int i = base; i < end; ++i) {
        const Run run = room_.runs[i];
        const bool is_live = run.line() >= oldest;
        touched |= static_cast<uint32_t>(is_live & run.looks.touches(first.looks, same_bits))
                   << (i - base);
      }
      touches |= touched != 0;
      for (; touched; touched &= touched - 1) {
        unite(room_.parents, static_cast<uint32_t>(count_ + SegmentBoxes::box_of_first(first)),
              static_cast<uint32_t>(room_.runs[base + first_bit(touched)].box()));
      }
    }
    return touches;
  }

  // Whether one thread has too little room for the runs that are live when one of this lane's
  // comes. In one thread a run that looks the same as another one which it touches is that one.
  CULE_COLD bool is_crowded(const SegmentBoxes& segment) const {
    const int num_first = segment.num_first();
    bool crowded = false;
    for (int i = lanes_.lane(); i < num_first; i += Lanes::kCount) {
      int live = i + 1;
      for (int k = 0; k < num_runs_; ++k) live += is_live(room_.runs[k], segment, i);
      crowded |= live > kMostLiveRuns;
    }
    return crowded;
  }
  // Whether a run of a segment before is live, and none of the first ones up to number `last` is
  // it.
  CULE_INLINE bool is_live(const Run& run, const SegmentBoxes& segment, int last) const {
    if (run.line() < oldest_for(settings_, segment.first(last).line())) return false;
    for (int i = 0; i <= last; ++i) {
      const Run first = segment.first(i);
      if (first.looks.word == run.looks.word && run.line() >= oldest_for(settings_, first.line()))
        return false;
    }
    return true;
  }

  // False: there is too little room for the runs.
  CULE_INLINE bool keep_last(const SegmentBoxes& segment) {
    const int oldest = oldest_for(settings_, segment.line() + 1);
    num_runs_ = keep_items<Run>(
        lanes_, num_runs_,
        [&](int i, Run& run) CULE_INLINE_LAMBDA {
          run = room_.runs[i];
          return run.line() >= oldest;
        },
        [&](int i, const Run& run) CULE_INLINE_LAMBDA { room_.runs[i] = run; });
    const int num_last = segment.num_last();
    if (num_runs_ + num_last > kMostLiveRuns) return false;
    for (int i = lanes_.lane(); i < num_last; i += Lanes::kCount) {
      const Run run = segment.last(i);
      room_.runs[num_runs_ + i] = {run.looks, Run::place_of(run.line(), count_ + run.box())};
    }
    num_runs_ += num_last;
    lanes_.sync();
    return true;
  }

  // Adds the boxes from `base` on, one for each lane, to those that they are parts of. A lane does
  // it for all of one box.
  CULE_INLINE void add_parts(int base) const {
    const int i = base + lanes_.lane();
    const int whole = i < count_ ? static_cast<int>(room_.parents[i]) : i;
    const bool is_part = whole != i;
    const uint32_t those = lanes_.alike(is_part ? whole : -1);
    if (is_part && lanes_before(lanes_, those) == 0) {
      Box box = room_.boxes[whole];
      for (uint32_t parts = those; parts; parts &= parts - 1)
        box = box.with(room_.boxes[base + first_bit(parts)]);
      room_.boxes[whole] = box;
    }
    lanes_.sync();
    if (is_part) room_.boxes[i] = Box::part_of(whole);
    lanes_.sync();
  }
};

}  // namespace cule
