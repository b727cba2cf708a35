// Which objects may have been on for a while, gathered from what was written: many scanlines have
// no two that matter, and need no closer look.
#pragma once

#include "tia/instruction_buffer.h"
#include "tia/write_facts.h"

namespace cule {

struct Sightings {
  uint32_t end;  // the entry before which all have been gathered
  uint32_t on;   // the objects that may have been on

  // From `tia` on, the state before entry `first`. New graphics may become old ones, and be shown.
  CULE_INLINE void begin(const TiaState& tia, uint32_t first) {
    end = first;
    const uint32_t grp = tia.grp.word, shown = grp | (grp >> 16 & tia.vdelp.word * 0xFFu);
    const uint32_t missiles = tia.enam.word & ~static_cast<uint32_t>(tia.resmp.word);
    const uint32_t balls = tia.enabl[0] | (tia.vdelbl & tia.enabl[1]);
    on = static_cast<uint32_t>((shown & 0x00FF) != 0) << kPlayer0 |
         static_cast<uint32_t>((shown & 0xFF00) != 0) << kPlayer1 |
         (missiles & 1) << kMissile0 | (missiles >> 8) << kMissile1 | balls << kBall |
         static_cast<uint32_t>(tia.playfield != 0) << kPlayfield;
    if (tia.vblank & 2) on = 0;
  }

  // Gathers from the entries before `count`.
  CULE_INLINE void gather(const uint32_t* entries, uint32_t count) {
    constexpr uint32_t kAtOnce = 4;  // which are on their way side by side
    static constexpr ObjectFactsOf kTable = objects_of_registers();
    uint32_t seen = on;
#pragma unroll 1
    for (uint32_t first = end; first < count; first += kAtOnce) {
      uint32_t next[kAtOnce];
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        next[i] = entries[first + i < count ? first + i : first];  // one again, at the end
      }
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const ObjectFacts facts = kTable.of[entry_register(next[i])];
        const bool shows = facts.by == 0 || (entry_value(next[i]) & facts.by);
        seen |= shows ? facts.shows : 0;
      }
    }
    on = seen;
    end = count;
  }
};

}  // namespace cule
