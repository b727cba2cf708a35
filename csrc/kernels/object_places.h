// Objects that a game's facts say where they are, instead of the TIA's pixels: parts of a
// playfield that is one box, and what RAM has while the program does not draw it.
//
// A place is a row of numbers. It says of one object, or of those of a grid, where they are and
// under which conditions they are there. Numbers come from RAM, and a grid's cells may have a byte
// each.
#pragma once

#include "console/memory_map.h"
#include "tia/render/box_finder.h"

namespace cule {

// A number: a byte of RAM as it is, or as programs write down where an object is (kNumberDelay);
// then in this order times, over, another byte and plus.
enum PlaceNumber : int {
  kNumberByte,   // -1: none; the number is then kNumberPlus
  kNumberEach,   // 1: each row has the next byte, or each column if there is one row
  kNumberMask,
  kNumberDelay,  // 1: the byte's low half is a delay, the high half a move for HMOVE
  kNumberTimes,
  kNumberOver,
  kNumberOther,       // the other byte, which is the same for all rows, or -1
  kNumberOtherTimes,  // 1 or -1
  kNumberPlus,
  kPlaceNumber,
};
// A condition: a byte's bits of a mask are in a range.
enum PlaceCondition : int {
  kConditionByte,  // -1: none
  kConditionEach,
  kConditionMask,
  kConditionLeast,
  kConditionMost,
  kPlaceCondition,
};
constexpr int kPlaceConditions = 4;
enum ObjectPlace : int {
  kPlaceKind,
  kPlaceX,
  kPlaceY = kPlaceX + kPlaceNumber,
  kPlaceWidth = kPlaceY + kPlaceNumber,
  kPlaceHeight = kPlaceWidth + kPlaceNumber,
  kPlaceRight = kPlaceHeight + kPlaceNumber,  // where the objects end at the latest
  kPlaceBottom,
  kPlaceColumns,  // of the grid, which are 1 for one object
  kPlaceRows,
  kPlacePitchX,
  kPlacePitchY,
  kPlaceBits,      // the byte whose bits say which cells of the first row are there; -1: all are
  kPlaceFirstBit,  // of the first cell
  kPlaceBitStep,
  kPlaceIf,
  kPlaceEnd = kPlaceIf + kPlaceConditions * kPlaceCondition,
};
static_assert(kPlaceEnd <= kObjectFactColumns, "a place is a row of facts");

// The places of an env: `ram` is its RAM, `lines` how many scanlines its screen has.
class ObjectPlaces {
 public:
  CULE_INLINE ObjectPlaces(const int16_t* facts, const uint8_t* ram, int lines)
      : facts_(facts), ram_(ram), lines_(lines) {}

  // Calls `found` with a row for each object that is there, as far as it is on the screen.
  template <class Found>
  CULE_INLINE void for_each(const Found& found) const {
    const int first = 1 + facts_[kNumRules];
    for (int i = 0; i < facts_[kNumPlaces]; ++i) {
      const int16_t* place = facts_ + (first + i) * kObjectFactColumns;
      for (int y = 0; y < place[kPlaceRows]; ++y) {
        for (int x = 0; x < place[kPlaceColumns]; ++x) {
          int16_t row[kObjectFields];
          if (is_there(place, x, y) && put(place, x, y, row)) found(row);
        }
      }
    }
  }

 private:
  static constexpr int kHalfByte = 16, kDelayPixels = 15;
  const int16_t* facts_;
  const uint8_t* ram_;
  int lines_;

  CULE_INLINE int byte(int first, int each, int step) const {
    return ram_[ram_index(static_cast<uint32_t>(first + each * step))];
  }
  // How many steps a cell's bytes are from the first cell's.
  static CULE_INLINE int steps_to(const int16_t* place, int x, int y) {
    return place[kPlaceRows] > 1 ? y : x;
  }
  CULE_INLINE int number(const int16_t* of, int step) const {
    int value = 0;
    if (of[kNumberByte] >= 0) value = byte(of[kNumberByte], of[kNumberEach], step);
    value &= of[kNumberMask];
    if (of[kNumberDelay]) {
      const int move = value / kHalfByte;  // to the left; from 8 on, 16 less
      value = value % kHalfByte * kDelayPixels - (move < 8 ? move : move - kHalfByte);
    }
    value = value * of[kNumberTimes] / of[kNumberOver] + of[kNumberPlus];
    if (of[kNumberOther] >= 0)
      value += byte(of[kNumberOther], 0, 0) * of[kNumberOtherTimes];
    return value;
  }
  CULE_INLINE bool is_there(const int16_t* place, int x, int y) const {
    if (place[kPlaceBits] >= 0) {
      const int bit = place[kPlaceFirstBit] + x * place[kPlaceBitStep];
      if ((byte(place[kPlaceBits], 1, y) >> (bit & 7) & 1) == 0) return false;
    }
    const int step = steps_to(place, x, y);
    for (int i = 0; i < kPlaceConditions; ++i) {
      const int16_t* of = place + kPlaceIf + i * kPlaceCondition;
      if (of[kConditionByte] < 0) break;
      const int value = byte(of[kConditionByte], of[kConditionEach], step) & of[kConditionMask];
      if (value < of[kConditionLeast] || value > of[kConditionMost]) return false;
    }
    return true;
  }
  // Writes an object's row. Whether some of it is on the screen.
  CULE_INLINE bool put(const int16_t* place, int column, int line, int16_t* row) const {
    constexpr int16_t kInNoFrame = 4;
    const int step = steps_to(place, column, line);
    const int x = number(place + kPlaceX, step) + column * place[kPlacePitchX];
    const int y = number(place + kPlaceY, step) + line * place[kPlacePitchY];
    row[kKind] = place[kPlaceKind];
    row[kX] = static_cast<int16_t>(x);
    row[kY] = static_cast<int16_t>(y);
    row[kWidth] = static_cast<int16_t>(number(place + kPlaceWidth, step));
    row[kHeight] = static_cast<int16_t>(number(place + kPlaceHeight, step));
    row[kColor] = 0;
    row[kVisible] = kInNoFrame;
    const int bottom = place[kPlaceBottom];
    return clip(row, place[kPlaceRight], bottom < lines_ ? bottom : lines_);
  }

 public:
  // Leaves of a row what is before `right` and `bottom`. Whether that is anything.
  static CULE_INLINE bool clip(int16_t* row, int right, int bottom) {
    for (int i = 0; i < 2; ++i) {
      const int size = i == 0 ? right : bottom;
      const int at = row[kX + i], end = at + row[kWidth + i];
      const int begin = at < 0 ? 0 : at, stop = end > size ? size : end;
      if (begin >= stop) return false;
      row[kX + i] = static_cast<int16_t>(begin);
      row[kWidth + i] = static_cast<int16_t>(stop - begin);
    }
    return true;
  }
};

}  // namespace cule
