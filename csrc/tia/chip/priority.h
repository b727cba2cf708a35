// Which color a pixel gets. The objects share three colors: COLUP0 (player 0 and missile 0), COLUP1
// (player 1 and missile 1) and COLUPF (playfield and ball). A pixel without an object gets COLUBK.
//
// Source: Stella Programmer's Guide, "CTRLPF". Bit 1 (score) gives the playfield's left half to
// COLUP0 and its right half to COLUP1. Bit 2 (priority) puts playfield and ball in front. If both
// are set, priority wins, except when the playfield is the only object that is switched on; this
// rule is ale-py's.
#pragma once

#include "tia/chip/objects.h"

namespace cule {

template <class Word>
struct ColorWord {
  Word p0, p1, pf;  // a pixel is in at most one of them; a pixel in none shows the background
};

// CTRLPF's bits 1 (score) and 2 (priority). If both are set, only the one that counts.
CULE_INLINE uint32_t score_or_priority(const TiaState& tia) {
  const uint32_t both = tia.ctrlpf & 6u;
  if (both != 6) return both;
  return objects_on(tia) == 1u << kPlayfield ? 2 : 4;
}

// The color of each pixel in some words. `line` has the objects' bits, `left` the pixels that are
// in the scanline's left half.
template <class Word>
CULE_INLINE ColorWord<Word> resolve_priority(uint32_t score_or_priority,
                                             const LineWord<Word>& line, const Word& left) {
  const Word playfield = line.bits[kPlayfield];
  Word p0 = line.bits[kPlayer0] | line.bits[kMissile0];
  Word p1 = line.bits[kPlayer1] | line.bits[kMissile1];
  Word pf = line.bits[kBall] | playfield;
  if (score_or_priority == 0) return {p0, p1 & ~p0, pf & ~p0 & ~p1};
  if (score_or_priority & 4) return {p0 & ~pf, p1 & ~p0 & ~pf, pf};
  if (score_or_priority & 2) {
    p0 |= playfield & left;
    p1 |= playfield & ~left;
    pf = line.bits[kBall];
  }
  return {p0, p1 & ~p0, pf & ~p0 & ~p1};
}

// The same for the word that begins at pixel `first`.
template <class Word>
CULE_INLINE ColorWord<Word> resolve_priority(uint32_t score_or_priority,
                                             const LineWord<Word>& line, int first) {
  constexpr int kBits = static_cast<int>(sizeof(Word) * 8);
  const int to_half = kLinePixels / 2 - first;
  const Word left = to_half >= kBits ? ~Word{0} : to_half <= 0 ? 0 : (Word{1} << to_half) - 1;
  return resolve_priority(score_or_priority, line, left);
}

}  // namespace cule
