// Searches for collisions that are put off until a program reads the latches (kSearchesLate).
//
// Many are never needed: the program clears the latches before it reads them, or the step ends, and
// then drawing finds all collisions (kernels/draw.h).
//
// Not on a GPU: there the lanes of a warp search together when they look for collisions, and the
// same scanlines. When their programs read, each would search alone.
#pragma once

#include "tia/collisions/search.h"

namespace cule {

// What is to be searched: the time from color clock `begin` to `end`, which a replay from `start`
// shows, for `latches`.
struct LateSearch {
  SegmentStart start;
  Replay replay;
  int32_t begin, end;
  uint32_t latches;
};

class LateSearches {
 public:
  CULE_INLINE bool is_full() const { return count_ == kMost; }
  // Whether one is for any of `latches`.
  CULE_INLINE bool are_for(uint32_t latches) const {
    return kSearchesLate && (latches_ & latches) != 0;
  }
  CULE_INLINE void clear() {
    if (kSearchesLate) count_ = latches_ = 0;
  }

  // Puts off a search. If it follows the last one directly, both become one: `latches` are all that
  // can be set in its time.
  CULE_INLINE void add(const SegmentStart& start, const Replay& replay, int32_t begin, int32_t end,
                       uint32_t latches) {
    const bool goes_on = count_ > 0 && searches_[count_ - 1].end == begin;
    LateSearch& search = searches_[goes_on ? count_ - 1 : count_];
    if (!goes_on) {
      search.start = start;
      search.begin = begin;
      search.latches = 0;
      ++count_;
    }
    search.end = end;
    search.latches |= latches;
    search.replay = replay;
    latches_ |= latches;
  }

  // Does all of them. Returns which latches are set that are not among `known`.
  CULE_INLINE uint32_t find(const TiaFormat& format, uint32_t known) {
    uint32_t found = known;
#pragma unroll 1
    for (uint32_t i = 0; i < count_; ++i) {
      const LateSearch& search = searches_[i];
      const uint32_t open = search.latches & ~found;
      if (open == 0) continue;
      SegmentStart at = search.start;
      found |= search_entries(at, format, search.replay, search.begin, search.end, open);
    }
    clear();
    return found & ~known;
  }

 private:
  static constexpr uint32_t kMost = kSearchesLate ? 8 : 1;
  uint32_t count_ = 0, latches_ = 0;
  LateSearch searches_[kMost];
};

}  // namespace cule
