// Which color a pixel gets. Objects share three colors: COLUP0 (player 0 and missile 0), COLUP1 (player 1 and missile 1) and
// COLUPF (playfield and ball); what none covers is COLUBK.
//
// Source: Stella Programmer's Guide, "CTRLPF". Bit 1 (score) gives the playfield's left half to COLUP0 and its right half to
// COLUP1; bit 2 (priority) puts playfield and ball in front. As in ale-py, priority beats score, unless
// the playfield is the only object that is switched on.
#pragma once

#include "tia/objects.h"

namespace cule {

template <class Word>
struct ColorWord {
  Word p0, p1, pf;  // disjoint; a pixel in none of them shows the background
};

template <class Word>
CULE_INLINE ColorWord<Word> resolve_priority(const TiaState& tia, const LineWord<Word>& line, int first) {
  constexpr int kHalf = kLinePixels / 2;
  const Word playfield = line.bits[kPlayfield];
  Word p0 = line.bits[kPlayer0] | line.bits[kMissile0];
  Word p1 = line.bits[kPlayer1] | line.bits[kMissile1];
  Word pf = line.bits[kBall] | playfield;
  if ((tia.ctrlpf & 6) == 0) return {p0, p1 & ~p0, pf & ~p0 & ~p1};
  const bool alone = objects_on(tia) == 1u << kPlayfield;
  const bool priority = (tia.ctrlpf & 4) && !(alone && (tia.ctrlpf & 2));
  if (priority) return {p0 & ~pf, p1 & ~p0 & ~pf, pf};
  if (tia.ctrlpf & 2) {
    constexpr int kBits = static_cast<int>(sizeof(Word) * 8);
    const int to_half = kHalf - first;
    const Word left = to_half >= kBits ? ~Word{0} : to_half <= 0 ? 0 : (Word{1} << to_half) - 1;
    p0 |= playfield & left;
    p1 |= playfield & ~left;
    pf = line.bits[kBall];
  }
  return {p0, p1 & ~p0, pf & ~p0 & ~p1};
}

}  // namespace cule
