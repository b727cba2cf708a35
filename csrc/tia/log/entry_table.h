// A table with a row for each entry of the instruction buffer: when it takes effect, and what it
// changes. A replay that looks entries up here does most of them in a few instructions.
//
// All of it comes from write_facts.h, which names the sources.
#pragma once

#include "tia/log/replay.h"

namespace cule {

// How a replay does an entry: it sets a field of the TIA's state (kField), or it is a write to a
// player's graphics, or to NUSIZx (kSize). kTimed: it is another write, but its row says when that
// takes effect. kReset: it is RESPx (effect_of_reset). kOther: when it takes effect depends on more
// than the row says (effect_of).
enum class EntryKind : uint8_t { kField, kGraphics0, kGraphics1, kSize, kTimed, kReset, kOther };
struct EntryRow {
  uint32_t field = 0;
  // write_delay, for all cycles: `delay` color clocks, plus bits of the cycle if `delay_bits` has
  // them. `unseen` is -1 if the picture need not be drawn up to there.
  uint8_t delay = 0, delay_bits = 0;
  int8_t unseen = 0;
  EntryKind kind = EntryKind::kOther;
  uint8_t objects = 0;  // those that look different at once if the write changes anything
  uint8_t moves = 0;  // those whose position or width it changes (ObjectFacts::moves); also the
                      // playfield, if that changes

  CULE_INLINE constexpr int delay_at(int32_t cycle) const {
    return delay + ((cycle + 2) & delay_bits);
  }
};

struct EntryTable {
  EntryRow rows[0x40];
};
constexpr EntryKind kind_of(const WriteFacts& facts) {
  using namespace tia_write;
  if (facts.reg == GRP0) return EntryKind::kGraphics0;
  if (facts.reg == GRP1) return EntryKind::kGraphics1;
  if (facts.reg == NUSIZ0 || facts.reg == NUSIZ1) return EntryKind::kSize;
  if (facts.reg == RESP0 || facts.reg == RESP1) return EntryKind::kReset;
  if (facts.cpu_effect == CpuEffect::kStars) return EntryKind::kOther;
  return facts.field ? EntryKind::kField : EntryKind::kTimed;
}
constexpr EntryTable entry_table() {
  constexpr WriteTable kTable = write_table();
  EntryTable table{};
  for (const WriteFacts& facts : kTable.rows) {
    EntryRow& row = table.rows[facts.reg];
    row.kind = kind_of(facts);
    row.field = facts.field;
    row.unseen = facts.shown == Shown::kAtNextHmove ? -1 : 0;
    const int shortest = write_delay(facts.reg, 2), longest = write_delay(facts.reg, 1);
    row.delay = static_cast<uint8_t>(shortest);
    row.delay_bits = static_cast<uint8_t>(longest - shortest);
    if (!row.unseen) row.objects = facts.objects.shows | facts.objects.alters;
    row.moves = static_cast<uint8_t>(facts.objects.moves | (row.objects & 1u << kPlayfield));
  }
  return table;
}
constexpr bool entries_have_write_delays() {
  constexpr EntryTable kTable = entry_table();
  for (uint32_t reg = 0; reg < kNumTiaWrites; ++reg) {
    for (int32_t cycle = 0; cycle < 4; ++cycle) {
      if (kTable.rows[reg].delay_at(cycle) != write_delay(reg, cycle)) return false;
    }
  }
  return true;
}
static_assert(entries_have_write_delays(), "expected delay_at and write_delay to agree");

// The effect of `entry` on `tia`, whose row is `row`. `View` must see colors, or must not mind that
// it is drawn up to where they change.
template <class View>
CULE_INLINE Effect effect_by_row(const TiaState& tia, const EntryRow& row, uint32_t entry) {
  const int32_t cycle = entry_cycle(entry);
  const uint32_t reg = entry_register(entry);
  if (row.kind < EntryKind::kReset) {
    return {(cycle * kClocksPerCycle + row.delay_at(cycle)) | row.unseen, cycle, reg,
            entry_value(entry), ResetPhase::kIdle};
  }
  return row.kind == EntryKind::kReset ? effect_of_reset(tia, reg, cycle)
                                       : effect_of<View>(tia, entry);
}

}  // namespace cule
