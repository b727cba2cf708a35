// The runs of a segment, read from a log (run_log.h), and which of them belong together. All lanes
// of a kind of Lanes (common/lanes.h) work on them: each reads its share of the entries, and tests
// its share of the runs for each run that follows.
#pragma once

#include "common/lanes.h"
#include "tia/render/box.h"
#include "tia/render/run_log.h"

namespace cule {

// Room to work in.
struct SegmentRoom {
  static constexpr int kMostRuns = 256, kMostLines = 32;  // a run's number fits a byte
  // What a run looks like, and the first and the last of its scanlines, a half each.
  struct alignas(8) Item {
    RunLooks looks;
    uint32_t lines;
  };
  Item runs[kMostRuns];
  // Of each run the first one of its box; of the first ones the number of that box; and of the
  // boxes their first runs.
  uint8_t firsts[kMostRuns], numbers[kMostRuns], roots[kMostRuns];
  bool begins[kMostRuns];
  // The entries of scanlines, and a bit for each of these in which an object has the same runs as
  // above.
  RunEntry lines[kMostLines];
  uint32_t same[kNumTiaObjects];
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
    for (int run = 0; run < count_; ++run) join(run);
    return most_live_ <= kMostLiveRuns;
  }

  // Gives numbers to the boxes, in the order of their first runs. Returns how many there are.
  CULE_INLINE int number_boxes() {
    return keep_items<int>(
        lanes_, count_,
        [&](int i, int& run) CULE_INLINE_LAMBDA {
          run = i;
          return room_.firsts[i] == i;
        },
        [&](int box, int run) CULE_INLINE_LAMBDA {
          room_.roots[box] = static_cast<uint8_t>(run);
          room_.numbers[run] = static_cast<uint8_t>(box);
        });
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
  CULE_INLINE int box_of(int run) const { return room_.numbers[room_.firsts[run]]; }
  CULE_INLINE bool begins(int run) const { return room_.begins[run]; }
  CULE_INLINE Box box(int number) const {
    const int root = room_.roots[number];
    Box box = box_around(root);
    for (int i = root + 1; i < count_; ++i) {
      if (room_.firsts[i] == root) box = box.with(box_around(i));
    }
    return box;
  }

 private:
  using Room = SegmentRoom;
  using Item = SegmentRoom::Item;
  const int16_t* settings_;
  Room& room_;
  Lanes lanes_;
  int num_lines_ = 0, count_ = 0, num_begun_ = 0, most_live_ = 0;

  static CULE_INLINE int first_of(const Item& run) { return static_cast<int>(run.lines & 0xFFFF); }
  static CULE_INLINE int last_of(const Item& run) { return static_cast<int>(run.lines >> 16); }
  CULE_INLINE Box box_around(int run) const {
    return Box::of(looks_of(run), first_of(run)).until(last_of(run));
  }

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

  // Puts a run together with those before it that it touches.
  CULE_INLINE void join(int run) {
    constexpr int kNone = -1;
    const Item its = room_.runs[run];
    const uint32_t same_bits =
        Run::same_bits(settings_[kOneColorClasses], its.looks.of_class());
    const int oldest = oldest_for(settings_, first_of(its));
    int first = kNone, live = 1;
    for (int base = 0; base < run; base += Lanes::kCount) {
      const int i = base + lanes_.lane();
      const Item other = room_.runs[i < run ? i : run];
      const bool is_live = i < run && last_of(other) >= oldest;
      const bool touches = is_live && other.looks.touches(its.looks, same_bits);
      live += count_bits(lanes_.ballot(is_live));
      uint32_t found = lanes_.ballot(touches);
      while (found) {
        const int its_first = room_.firsts[base + first_bit(found)];
        first = first == kNone ? its_first : join_boxes(first, its_first, run);
        found = lanes_.ballot(touches && room_.firsts[i] != first);
      }
      // Whatever touches this one touches that which looks the same.
      if (touches && other.looks.word == its.looks.word) room_.runs[i].lines = first_of(other);
    }
    most_live_ = most(most_live_, live);
    num_begun_ += first == kNone;
    if (lanes_.lane() == 0) {
      room_.firsts[run] = static_cast<uint8_t>(first == kNone ? run : first);
      room_.begins[run] = first == kNone;
    }
    lanes_.sync();
  }
  // Makes one of two boxes, of the runs before `end`. Returns its first run.
  CULE_INLINE int join_boxes(int one, int other, int end) {
    const int first = one < other ? one : other, part = one < other ? other : one;
    if (first == part) return first;
    lanes_.sync();  // all have read theirs
    for (int i = lanes_.lane(); i < end; i += Lanes::kCount) {
      if (room_.firsts[i] == part) room_.firsts[i] = static_cast<uint8_t>(first);
    }
    lanes_.sync();
    return first;
  }
  static CULE_INLINE int most(int one, int other) { return one < other ? other : one; }
};

}  // namespace cule
