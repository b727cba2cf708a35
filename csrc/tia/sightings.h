// What has been seen of the objects for a while, gathered from what was written: enough to say which
// of them cannot have met. Most scanlines have no two that matter near each other, and need no closer
// look.
#pragma once

#include "tia/collision_view.h"
#include "tia/instruction_buffer.h"
#include "tia/write_facts.h"

namespace cule {

// The graphics that `tia` shows, or would as soon as new ones become old ones; player 0 in the low
// byte.
CULE_INLINE uint32_t graphics_at_hand(const TiaState& tia) {
  const uint32_t grp = tia.grp.word;
  return (grp | (grp >> 16 & tia.vdelp.word * 0xFFu)) & 0xFFFF;
}

// The objects that it shows so.
CULE_INLINE uint32_t objects_at_hand(const TiaState& tia) {
  if (tia.vblank & 2) return 0;
  const uint32_t shown = graphics_at_hand(tia);
  const uint32_t missiles = tia.enam.word & ~static_cast<uint32_t>(tia.resmp.word);
  return static_cast<uint32_t>((shown & 0x00FF) != 0) << kPlayer0 |
         static_cast<uint32_t>((shown & 0xFF00) != 0) << kPlayer1 |
         (missiles & 1) << kMissile0 | (missiles >> 8) << kMissile1 |
         static_cast<uint32_t>(tia.enabl[0] | (tia.vdelbl & tia.enabl[1])) << kBall |
         static_cast<uint32_t>(tia.playfield != 0) << kPlayfield;
}

struct Sightings {
  uint32_t end;        // the entry before which all have been gathered
  uint32_t on;         // the objects that may have been on
  uint32_t moved;      // those that may have changed their places; kStruck: by an HMOVE, too
  uint32_t again;      // those that may have done so more than once
  uint32_t graphics;   // all that the players had, player 0 in the low byte
  uint32_t playfield;  // all that was in the left half
  int32_t written;     // the last write's cycle
  static constexpr uint32_t kStruck = 1u << kNumTiaObjects;

  // From `tia` on, the state before entry `first`.
  CULE_INLINE void begin(const TiaState& tia, uint32_t first) {
    end = first;
    on = objects_at_hand(tia);
    moved = again = 0;
    graphics = graphics_at_hand(tia);
    playfield = tia.playfield;
  }
  // Gathers from the entries before `count`.
  CULE_INLINE void gather(const uint32_t* entries, uint32_t count) {
    constexpr uint32_t kAtOnce = 4;  // which are on their way side by side
#pragma unroll 1
    while (end < count) {
      uint32_t next[kAtOnce];
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce; ++i) next[i] = entries[end + i < count ? end + i : end];
#pragma unroll 1
      for (uint32_t i = 0; i < kAtOnce && end < count; ++i, ++end) {
        note(next[0]);
#pragma unroll
        for (uint32_t k = 1; k < kAtOnce; ++k) next[k - 1] = next[k];
      }
    }
  }

 private:
  CULE_INLINE void note(uint32_t entry) {
    using namespace tia_write;
    static constexpr ObjectFactsOf kTable = objects_of_registers();
    const uint32_t reg = entry_register(entry), value = entry_value(entry);
    const ObjectFacts facts = kTable.of[reg];
    if (facts.by == 0 || (value & facts.by)) on |= facts.shows;
    again |= moved & facts.moves;
    moved |= facts.moves;
    on |= facts.moves & kAllObjects;
    if (reg >= PF0 && reg <= PF2) playfield |= set_playfield(0, reg, value);
    const uint32_t shift = facts.shows == 1u << kPlayer1 ? 8 : 0;
    if (facts.draws) graphics |= (facts.by ? value : 0xFF) << shift;
    if (reg == HMM0 && (value & 0x0F)) again |= moved |= 1u << kMissile0;  // stars
    written = entry_cycle(entry);
  }
};

// The objects of `seen` that were in more than one place, since `before`, and in more than two.
struct Moves {
  uint32_t moved, again;
};
CULE_INLINE Moves moves_of(const Sightings& seen, const TiaState& before, const TiaState& now) {
  Moves moves{seen.moved & kAllObjects, seen.again & kAllObjects};
  uint32_t struck = 0;
  if (seen.again & Sightings::kStruck) {
    struck = kMovableObjects;
    moves.again |= struck;
  } else if (seen.moved & Sightings::kStruck) {
    const uint32_t differ = before.positions.word ^ now.positions.word;
    struck = static_cast<uint32_t>((differ & 0xFF) != 0) << kPlayer0 |
             static_cast<uint32_t>((differ & 0xFF00) != 0) << kPlayer1 |
             static_cast<uint32_t>((differ & 0xFF0000) != 0) << kMissile0 |
             static_cast<uint32_t>((differ & 0xFF000000) != 0) << kMissile1 |
             static_cast<uint32_t>(before.ball_position != now.ball_position) << kBall;
    struck |= moves.moved & kMovableObjects;  // as RESxx may have put them back
  }
  // Cosmic Ark's stars move with the beam.
  if (has_stars(before) || has_stars(now)) struck |= moves.again |= 1u << kMissile0;
  moves.again |= moves.moved & struck;
  moves.moved |= struck | moves.again;
  return moves;
}

// Where `object` is, or would be if it were on, copies that the beam has skipped among them.
CULE_INLINE Extent whole_place(const TiaState& tia, uint32_t object) {
  Extent place = place_of(tia, object);
  place.skip_first = false;
  return place;
}

// The pixels of `object` in `tia` in the word that begins at `first`; players have all of `graphics`.
CULE_INLINE uint32_t pixels_of(const TiaState& tia, uint32_t object, uint32_t graphics, int first) {
  const Extent extent = whole_place(tia, object);
  const uint32_t own = graphics >> (object == kPlayer1 ? 8 : 0) & 0xFF;
  const uint32_t pattern = pattern_of(tia, object, extent.width, own);
  uint32_t word = 0;
  for_each_start(extent, [&](int start) CULE_INLINE_LAMBDA {
    word |= place<uint32_t>(pattern, start, first);
  });
  return word;
}

// Those of `latches` that can have been set since `before`, when `seen` was begun, until `now`.
CULE_INLINE uint32_t may_have_met(const Sightings& seen, const TiaState& before,
                                  const TiaState& now, uint32_t latches) {
  constexpr uint32_t kEverywhere = (1u << kLineBlocks) - 1;
  const uint32_t movables = objects_of_latches(latches) & kMovableObjects;
  const Moves moves = moves_of(seen, before, now);
  uint32_t blocks[kNumTiaObjects] = {};
#pragma unroll 1
  for (uint32_t left = movables; left; left &= left - 1) {
    const uint32_t object = lowest_object(left);
    blocks[object] = movable_blocks(whole_place(now, object));
    if (moves.moved >> object & 1) blocks[object] |= movable_blocks(whole_place(before, object));
    if (moves.again >> object & 1) blocks[object] = kEverywhere;
  }
  // What the right half has been of the left one, which CTRLPF says, mostly from the next line on.
  const bool turned = moves.moved >> kPlayfield & 1;
  const bool mirrored = turned || before.reflect_now || now.reflect_now || (now.ctrlpf & 1);
  const bool repeated = turned || !(before.reflect_now & now.reflect_now & now.ctrlpf & 1);
  blocks[kPlayfield] = playfield_blocks(seen.playfield, repeated, mirrored);
  const uint32_t common = common_blocks(blocks, latches);
  if (common == 0) return 0;
  // Pixels say no more of objects that can be anywhere.
  const uint32_t vague = latches & ~possible_latches(kAllObjects & ~moves.again);
  if (vague && common_blocks(blocks, vague)) return latches;

  const uint64_t right = (repeated ? seen.playfield : 0) |
                         (mirrored ? reverse_playfield(seen.playfield) : 0);
  constexpr int kBits = 32;
  uint32_t met = 0;
#pragma unroll 1
  for (int first = 0; first < kLinePixels; first += kBits) {
    if (!(common & blocks_between(first, first + kBits))) continue;
    LineWord<uint32_t> line{};
    line.bits[kPlayfield] = playfield_word<uint32_t>(seen.playfield | right << 20, first);
#pragma unroll 1
    for (uint32_t left = movables; left; left &= left - 1) {
      const uint32_t object = lowest_object(left);
      uint32_t word = pixels_of(now, object, seen.graphics, first);
      if (moves.moved >> object & 1) word |= pixels_of(before, object, seen.graphics, first);
      line.bits[object] = word;
    }
    met |= find_collisions(line);
  }
  return met & latches;
}

}  // namespace cule
