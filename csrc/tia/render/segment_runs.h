// The runs of a segment, read from a log (run_log.h), and which of them belong together. All lanes
// of a kind of Lanes (common/lanes.h) work on them: each reads its share of the entries, and tests
// its share of the runs for each run that follows.
#pragma once

#include "common/lanes.h"
#include "tia/render/box.h"
#include "tia/render/run_log.h"
#include "tia/render/union_find.h"

namespace cule {

// Room to work in.
struct SegmentRoom {
  static constexpr int kMostRuns = 256, kMostLines = 32, kMostBoxes = kSegmentBoxWords / 2;
  // What a run looks like, and the first and the last of its scanlines, a half each.
  struct alignas(8) Item {
    RunLooks looks;
    uint32_t lines;
  };
  // The boxes, of which the first scanline is that of the first run.
  struct Boxes {
    uint32_t begin[kMostBoxes], end[kMostBoxes], last[kMostBoxes], objects[kMostBoxes];
    uint8_t first_runs[kMostBoxes];
  };
  Item runs[kMostRuns];
  // Which runs are of the same box (union_find.h), the number of the box of each run that is the
  // first of one, and whether a run begins a box in one thread.
  uint32_t parents[kMostRuns];
  uint8_t numbers[kMostRuns];
  bool begins[kMostRuns];
  // The entries of scanlines, and a bit for each of these in which an object has the same runs as
  // above.
  RunEntry lines[kMostLines];
  uint32_t same[kNumTiaObjects];
  union {
    uint16_t replaced_by[kMostRuns];  // the run that one is in one thread from then on, or count()
    Boxes boxes;
  };
};

// Its functions are called in their order.
template <class Lanes>
class SegmentRuns {
 public:
  CULE_INLINE SegmentRuns(const int16_t* settings, SegmentRoom& room, const Lanes& lanes)
      : settings_(settings), room_(room), lanes_(lanes) {}

  // Reads the runs of a log, and finds out for each up to which scanline it is repeated. False:
  // they are not all there, or there is too little room for them.
  CULE_INLINE bool read(const uint32_t* log) {
    if (!is_complete(log)) return false;
    const int entries = num_entries(log);
    bool pieces = false;
    for (int base = 0; base < entries; base += Lanes::kCount) {
      const int i = base + lanes_.lane();
      const RunEntry entry{i < entries ? log[1 + i] : 0};
      const uint32_t lines = lanes_.ballot(i < entries && entry.is_line()),
                     runs = lanes_.ballot(i < entries && !entry.is_line());
      const int line = num_lines_ + lanes_before(lanes_, lines);
      if (i < entries && entry.is_line()) {
        if (line < Room::kMostLines) room_.lines[line] = entry;
      } else if (i < entries) {
        const int run = count_ + lanes_before(lanes_, runs);
        if (run < Room::kMostRuns) room_.runs[run] = {{entry.word}, static_cast<uint32_t>(line)};
      }
      pieces |= lanes_.ballot(i < entries && !entry.is_line() && entry.of_piece()) != 0;
      num_lines_ += count_bits(lines);
      count_ += count_bits(runs);
    }
    if (num_lines_ > Room::kMostLines || count_ > Room::kMostRuns) return false;
    lanes_.sync();
    collect_same();
    if (pieces) lengthen_pieces();
    for (int i = lanes_.lane(); i < count_; i += Lanes::kCount) room_.runs[i] = completed(i);
    lanes_.sync();
    return true;
  }

  // Finds out which runs belong together. False: more were live than one thread has room for.
  CULE_INLINE bool join() {
    for (int i = lanes_.lane(); i < count_; i += Lanes::kCount)
      room_.parents[i] = static_cast<uint32_t>(i);
    lanes_.sync();
    bool crowded = false;
    for (int base = 0; base < count_; base += Lanes::kCount) {
      const int run = base + lanes_.lane();
      const bool begins = run < count_ && join(run, base + Lanes::kCount, crowded);
      if (run < count_) room_.begins[run] = begins;
      num_begun_ += count_bits(lanes_.ballot(begins));
    }
    lanes_.sync();
    // In one thread a run that looks the same as another one which it touches is that one.
    const bool replaces = settings_[kLineGap] > 0;
    crowded = lanes_.ballot(crowded) != 0;
    if (replaces || crowded) find_replaced();
    return !crowded || !lanes_.ballot(is_crowded());
  }

  // Of the runs that later ones may touch, those that no later one has replaced.
  CULE_INLINE bool is_last(int run, int oldest) const {
    return last_of(run) >= oldest &&
           (settings_[kLineGap] == 0 || room_.replaced_by[run] == count_);
  }

  // Gives numbers to the boxes, in the order of their first runs. Returns how many there are.
  CULE_INLINE int number_boxes() {
    find_least(room_.parents, count_, lanes_);
    return keep_items<int>(
        lanes_, count_,
        [&](int i, int& run) CULE_INLINE_LAMBDA {
          run = i;
          return room_.parents[i] == static_cast<uint32_t>(i);
        },
        [&](int box, int run) CULE_INLINE_LAMBDA {
          room_.numbers[run] = static_cast<uint8_t>(box);
        });
  }

  // Puts `count` boxes around their runs.
  CULE_INLINE void find_boxes(int count) {
    SegmentRoom::Boxes& boxes = room_.boxes;
    lanes_.sync();  // nobody needs replaced_by any more
    for (int box = lanes_.lane(); box < count; box += Lanes::kCount) {
      boxes.begin[box] = ~0u;
      boxes.end[box] = boxes.last[box] = boxes.objects[box] = 0;
    }
    lanes_.sync();
    for (int i = lanes_.lane(); i < count_; i += Lanes::kCount) {
      const RunLooks looks = looks_of(i);
      const int box = box_of(i);
      lower_to(&boxes.begin[box], static_cast<uint32_t>(looks.begin()));
      raise_to(&boxes.end[box], static_cast<uint32_t>(looks.end()));
      raise_to(&boxes.last[box], static_cast<uint32_t>(last_of(i)));
      set_bits(&boxes.objects[box], 1u << looks.object());
      if (room_.parents[i] == static_cast<uint32_t>(i))
        boxes.first_runs[box] = static_cast<uint8_t>(i);
    }
    lanes_.sync();
  }
  CULE_INLINE Box box(int number) const {
    const SegmentRoom::Boxes& boxes = room_.boxes;
    const int first = boxes.first_runs[number];
    return Box::made(static_cast<int>(boxes.begin[number]), static_cast<int>(boxes.end[number]),
                     boxes.objects[number], looks_of(first).color(), first_of(first),
                     static_cast<int>(boxes.last[number]) + 1);
  }

  CULE_INLINE int count() const { return count_; }
  CULE_INLINE int num_begun() const { return num_begun_; }
  CULE_INLINE int first_line() const { return num_lines_ ? room_.lines[0].first() : kNoLine; }
  CULE_INLINE int last_line() const {
    return num_lines_ ? room_.lines[num_lines_ - 1].last() : kNoLine;
  }
  CULE_INLINE RunLooks looks_of(int run) const { return room_.runs[run].looks; }
  CULE_INLINE int first_of(int run) const { return first_of(room_.runs[run]); }
  CULE_INLINE int last_of(int run) const { return last_of(room_.runs[run]); }
  CULE_INLINE int box_of(int run) const { return room_.numbers[room_.parents[run]]; }
  CULE_INLINE bool begins(int run) const { return room_.begins[run]; }

 private:
  using Room = SegmentRoom;
  using Item = SegmentRoom::Item;
  const int16_t* settings_;
  Room& room_;
  Lanes lanes_;
  int num_lines_ = 0, count_ = 0, num_begun_ = 0;

  static CULE_INLINE int first_of(const Item& run) { return static_cast<int>(run.lines & 0xFFFF); }
  static CULE_INLINE int last_of(const Item& run) { return static_cast<int>(run.lines >> 16); }
  CULE_INLINE void collect_same() {
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      uint32_t same = 0;
      for (int base = 0; base < num_lines_; base += Lanes::kCount) {
        const int line = base + lanes_.lane();
        same |= lanes_.ballot(line < num_lines_ && room_.lines[line].same() >> object & 1) << base;
      }
      if (lanes_.lane() == 0) room_.same[object] = same;
    }
    lanes_.sync();
  }

  // A run of a piece goes on with that of a piece before on its scanline, from its beginning on.
  CULE_INLINE void lengthen_pieces() {
    for (int base = 0; base < count_; base += Lanes::kCount) {
      const int i = base + lanes_.lane();
      const bool mine = i < count_ && RunEntry{room_.runs[i].looks.word}.of_piece();
      uint32_t looks = mine ? room_.runs[i].looks.word : 0;
      if (mine) looks = looks - (looks & 0xFF) + static_cast<uint32_t>(begin_of_piece(i));
      lanes_.sync();  // all have read theirs
      if (mine) room_.runs[i].looks.word = looks;
      lanes_.sync();
    }
  }
  CULE_INLINE int begin_of_piece(int run) const {
    constexpr uint32_t kSame = RunLooks::kColorBits | 7u << RunLooks::kObjectShift;
    const Item its = room_.runs[run];
    const int gap = gap_of(settings_, its.looks.object());
    for (int i = run - 1; i >= 0 && room_.runs[i].lines == its.lines; --i) {
      const RunLooks other = room_.runs[i].looks;
      if (((other.word ^ its.looks.word) & kSame) == 0 && its.looks.begin() - other.end() < gap)
        return other.begin();
    }
    return its.looks.begin();
  }

  // A run with its class and its scanlines, of which it had the number of the first one's entry.
  CULE_INLINE Item completed(int run) const {
    const Item item = room_.runs[run];
    const RunLooks looks = RunEntry{item.looks.word}.looks();
    const auto of_class = static_cast<uint32_t>(settings_[kClassOf + looks.object()]);
    const uint64_t same = room_.same[looks.object()];
    const int line = static_cast<int>(item.lines);
    const int repeats = first_bit(~(same >> (line + 1)));
    return {{looks.word | of_class << RunLooks::kClassShift},
            static_cast<uint32_t>(room_.lines[line].first()) |
                static_cast<uint32_t>(room_.lines[line + repeats].last()) << 16};
  }

  // Whether a run touches an earlier one.
  struct Touch {
    RunLooks looks;
    uint32_t same_bits;
    int oldest;

    CULE_INLINE bool may_reach(const Item& run) const { return last_of(run) >= oldest; }
    CULE_INLINE bool operator()(const Item& run) const {
      return run.looks.touches(looks, same_bits);
    }
  };
  CULE_INLINE Touch touch_of(const Item& run) const {
    return {run.looks, Run::same_bits(settings_[kOneColorClasses], run.looks.of_class()),
            oldest_for(settings_, first_of(run))};
  }

  // Puts a run together with those before it that it touches. Other lanes do so with theirs, which
  // are below `end`. Returns whether it touches none; and sets `crowded` if, with those that one
  // thread would have replaced, more are live than that has room for.
  CULE_INLINE bool join(int run, int end, bool& crowded) {
    constexpr int kBits = 32;
    const Touch touches = touch_of(room_.runs[run]);
    int live = 1;
    bool begins = true;
    for (int base = 0; base < end && base < count_; base += kBits) {
      uint32_t touched = 0;
      const int until = base + kBits < run ? base + kBits : run;
      for (int i = base; i < until; ++i) {
        const Item other = room_.runs[i];
        const bool is_live = touches.may_reach(other);
        live += is_live;
        touched |= static_cast<uint32_t>(is_live & touches(other)) << (i - base);
      }
      begins &= touched == 0;
      for (; touched; touched &= touched - 1) {
        unite(room_.parents, static_cast<uint32_t>(run),
              static_cast<uint32_t>(base + first_bit(touched)));
      }
    }
    crowded |= live > kMostLiveRuns;
    return begins;
  }

  CULE_INLINE void find_replaced() const {
    for (int run = lanes_.lane(); run < count_; run += Lanes::kCount) {
      const Item its = room_.runs[run];
      const int latest = last_of(its) + 1 + settings_[kLineGap];
      int other = run + 1;
      for (; other < count_ && first_of(room_.runs[other]) <= latest; ++other) {
        const Item later = room_.runs[other];
        if (later.looks.word == its.looks.word && touch_of(later).may_reach(its)) break;
      }
      const bool found = other < count_ && first_of(room_.runs[other]) <= latest;
      room_.replaced_by[run] = static_cast<uint16_t>(found ? other : count_);
    }
    lanes_.sync();
  }
  // Whether one thread has too little room for the runs that are live when one of this lane's
  // comes.
  CULE_INLINE bool is_crowded() const {
    bool crowded = false;
    for (int run = lanes_.lane(); run < count_; run += Lanes::kCount) {
      const Touch touches = touch_of(room_.runs[run]);
      int live = 1;
      for (int i = 0; i < run; ++i)
        live += touches.may_reach(room_.runs[i]) && room_.replaced_by[i] > run;
      crowded |= live > kMostLiveRuns;
    }
    return crowded;
  }
};

}  // namespace cule
