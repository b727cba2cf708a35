// A search for collisions, alone.
#pragma once

#include <vector>

#include "tia/collisions/search.h"

namespace cule {

// What has been written since some state, and the latches that a search finds in it.
struct Searched {
  SegmentStart start{};
  std::vector<uint32_t> entries;
  uint32_t after_clear = 0;

  explicit Searched(const TiaState& tia) { start.tia = tia; }
  void write(uint32_t entry) {
    entries.push_back(entry);
    const bool clears = entry_register(entry) == tia_write::CXCLR;
    if (clears) after_clear = static_cast<uint32_t>(entries.size());
  }
  // An access to the TIA at the cycle of the last write: the search goes up to there.
  uint32_t last() const {
    return encode_entry(entries.empty() ? 0 : entry_cycle(entries.back()), kMarkTouch, 0);
  }
  uint32_t find(const TiaFormat& format, uint32_t latches) const {
    SegmentStart at = start;
    const Replay replay{entries.data(), static_cast<uint32_t>(entries.size()), after_clear, last()};
    return search_entries(at, format, replay, at.tia.cursor, format.last_clock, latches);
  }
};

}  // namespace cule
