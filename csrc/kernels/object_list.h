// An env's list of objects: boxes of its last two frames that are named, and maybe moved, cut or
// divided by the rules of the game; and the game's places.
#pragma once

#include "kernels/object_places.h"

namespace cule {

// The columns of a rule, and which of them have a least and a greatest value. Rules say what boxes
// are: a box is of the first rule that it fits.
enum ObjectRule : int {
  kRuleKind,
  kRuleJoins,   // all boxes of it are one object
  kRuleColor,   // -1: any
  kRuleRanges,  // of x, y, width and height
  kRuleMoveX = kRuleRanges + 8,
  kRuleMoveY,
  kRuleWidth,  // 0: the box's own
  kRuleHeight,
  kRuleAtRight,  // of another width, the object ends where the box ends
  kRulePitch,    // from one cell to the next if the box is divided into cells of that width; or 0
  kRuleTop,      // the object's scanlines are from this one on
  kRuleBottom,   // and above this one
  kRuleEnd,
};
static_assert(kRuleEnd <= kObjectFactColumns, "a rule is a row of facts");

CULE_INLINE bool fits_rule(const int16_t* box, const int16_t* rule) {
  if (rule[kRuleColor] >= 0 && rule[kRuleColor] != box[kColor]) return false;
  const int16_t* range = rule + kRuleRanges;
  for (int field = kX; field <= kHeight; ++field, range += 2) {
    if (box[field] < range[0] || box[field] > range[1]) return false;
  }
  return true;
}

// Whether boxes of two frames are one object: of the same objects of the TIA or of the same color,
// of about the same size, and not far from each other.
CULE_INLINE bool is_same_object(const int16_t* box, const int16_t* other) {
  constexpr int kFar = 4;  // pixels
  if (box[kKind] != other[kKind] && box[kColor] != other[kColor]) return false;
  for (int i = 0; i < 2; ++i) {
    const int at = box[kX + i], its = other[kX + i], size = box[kWidth + i];
    const int its_size = other[kWidth + i];
    if (2 * size < its_size || 2 * its_size < size) return false;
    if (at > its + its_size + kFar - 1 || its > at + size + kFar - 1) return false;
  }
  return true;
}

// How many pixels two boxes have in common, or one has.
CULE_INLINE int common_pixels(const int16_t* box, const int16_t* other) {
  int pixels = 1;
  for (int i = 0; i < 2; ++i) {
    const int begin = box[kX + i] > other[kX + i] ? box[kX + i] : other[kX + i];
    const int end = box[kX + i] + box[kWidth + i], its = other[kX + i] + other[kWidth + i];
    const int size = (end < its ? end : its) - begin;
    if (size <= 0) return 0;
    pixels *= size;
  }
  return pixels;
}
CULE_INLINE int pixels_of(const int16_t* box) { return box[kWidth] * box[kHeight]; }

// Makes the list of an env's objects, in rows that are clear. All lanes of a kind of Lanes
// (common/lanes.h) call its functions together.
template <class Lanes>
class ObjectList {
 public:
  CULE_INLINE ObjectList(int16_t* rows, int room, const int16_t* facts, int lines,
                         const Lanes& lanes)
      : rows_(rows), room_(room), facts_(facts), lines_(lines), lanes_(lanes) {}

  CULE_INLINE int left_out() const { return left_out_; }

  // Adds the boxes of two frames. `seen` of a box: bit 0, in the last frame; bit 1, in the other.
  CULE_INLINE void add(const FrameBoxes& last, const FrameBoxes& before) {
    left_out_ = last.left_out() + before.left_out();
    const int count = last.count(), count_before = before.count();
    match(last, count, before, count_before);
    find_rules(last, count);
    find_rules(before, count_before);
    add_all(last, count);
    add_all(before, count_before);
  }

  // Adds the game's places, if the list has no such object there. Of what it has there, that which
  // is only a part of a place leaves the list.
  CULE_INLINE void add_places(const uint8_t* ram) {
    if (facts_[kNumPlaces] == 0) return;
    const int seen = count_;
    int kind = -1;  // of the last place, and whether the list has any object of it
    bool is_seen = false;
    ObjectPlaces(facts_, ram, lines_).for_each([&](const int16_t* place) {
      if (place[kKind] != kind) {
        kind = place[kKind];
        is_seen = first_where(lanes_, 0, seen, [&](int i) CULE_INLINE_LAMBDA {
          return row(i)[kKind] == kind;
        }) < seen;
      }
      if (is_seen && replaces_parts(place, seen)) return;
      if (count_ < room_) put(place);
      else replace_unknown(place);
    });
    keep_visible();
  }

 private:
  static constexpr int kInBothFrames = 3, kSeenBits = 2;
  int16_t* rows_;
  int room_;
  const int16_t* facts_;
  int lines_;
  Lanes lanes_;
  int count_ = 0, left_out_ = 0;

  CULE_INLINE int16_t* row(int i) const { return rows_ + i * kObjectFields; }
  CULE_INLINE void put(const int16_t* object) {
    if (count_ == room_) {
      ++left_out_;
      return;
    }
    if (lanes_.lane() == 0) copy_row(row(count_), object);
    ++count_;
    lanes_.sync();
  }

  // Marks the boxes of the last frame, and those of the frame before that are none of them: each of
  // these is the first of the last frame's that is the same object and no other's. A lane for each;
  // if two lanes find the same one, the second and those after it look again.
  CULE_INLINE void match(const FrameBoxes& last, int count, const FrameBoxes& before,
                         int count_of_before) const {
    for (int i = lanes_.lane(); i < count; i += Lanes::kCount) last.at(i)[kVisible] = 1;
    lanes_.sync();
    const auto is_free = [&](int k) CULE_INLINE_LAMBDA { return last.at(k)[kVisible] == 1; };
    int free = 0;  // the first that is; boxes of the same object come in about the same order
    for (int base = 0; base < count_of_before;) {
      const int i = base + lanes_.lane();
      int same = count;
      if (i < count_of_before) {
        int16_t box[kObjectFields];
        copy_row(box, before.at(i));
        for (same = free; same < count; ++same)
          if (is_free(same) && is_same_object(box, last.at(same))) break;
      }
      const bool found = same < count;
      const uint32_t those = lanes_.alike(same);
      const uint32_t again = lanes_.ballot(found && lanes_before(lanes_, those) > 0);
      const int end = again ? first_bit(again) : Lanes::kCount;
      lanes_.sync();  // all have looked
      if (i < count_of_before && lanes_.lane() < end) {
        if (found) last.at(same)[kVisible] = kInBothFrames;
        before.at(i)[kVisible] = found ? 0 : 2;
      }
      lanes_.sync();
      free = first_where(lanes_, free, count, is_free);
      base += end;
    }
  }

  // In a list that is full an object of a kind is worth more than one of none.
  CULE_COLD void replace_unknown(const int16_t* object) {
    ++left_out_;
    int i = count_ - 1;
    while (i >= 0 && row(i)[kKind] != 0) --i;
    lanes_.sync();  // all have found it
    if (i >= 0 && lanes_.lane() == 0) copy_row(row(i), object);
    lanes_.sync();
  }

  // Whether one of the first `seen` objects is where a place is. Those before it that are only
  // parts of the place leave the list.
  CULE_INLINE bool replaces_parts(const int16_t* place, int seen) {
    for (int base = 0; base < seen; base += Lanes::kCount) {
      const int i = base + lanes_.lane();
      bool is_there = false, is_part = false;
      if (i < seen && row(i)[kKind] == place[kKind] && row(i)[kVisible] & kInBothFrames) {
        const int common = common_pixels(place, row(i)), its = pixels_of(row(i));
        is_there = 3 * common >= its + pixels_of(place);
        is_part = 2 * common >= its;
      }
      const uint32_t there = lanes_.ballot(is_there);
      const bool is_before = there == 0 || lanes_.lane() < first_bit(there);
      if (is_part && is_before) row(i)[kVisible] = 0;
      lanes_.sync();
      if (there) return true;
    }
    return false;
  }

  CULE_INLINE void keep_visible() {
    const int used = count_;
    count_ = keep_items<ObjectRow>(
        lanes_, used,
        [&](int i, ObjectRow& object) CULE_INLINE_LAMBDA {
          copy_row(object.fields, row(i));
          return object.fields[kVisible] != 0;
        },
        [&](int i, const ObjectRow& object) CULE_INLINE_LAMBDA {
          copy_row(row(i), object.fields);
        });
    const int end = used * kObjectFields;
    for (int i = count_ * kObjectFields + lanes_.lane(); i < end; i += Lanes::kCount) rows_[i] = 0;
  }

  // Writes into kVisible of each box, behind the two bits, the number of the first rule that it
  // fits, from 1 on; 0: none. A lane for each box, as all lanes then read the same rule.
  CULE_INLINE void find_rules(const FrameBoxes& boxes, int count) const {
    for (int i = lanes_.lane(); i < count; i += Lanes::kCount) {
      int16_t box[kObjectFields];
      copy_row(box, boxes.at(i));
      if (box[kVisible] == 0) continue;
      int found = 0;
      for (int rule = 1; rule <= facts_[kNumRules] && found == 0; ++rule) {
        if (fits_rule(box, facts_ + rule * kObjectFactColumns)) found = rule;
      }
      boxes.at(i)[kVisible] = static_cast<int16_t>(box[kVisible] | found << kSeenBits);
    }
    lanes_.sync();
  }

  // Adds what boxes are by their rules; without a rule they are of kind 0. A lane for each, but for
  // those that are several objects or become a part of one.
  CULE_INLINE void add_all(const FrameBoxes& boxes, int count) {
    for (int base = 0; base < count;) {
      const int i = base + lanes_.lane();
      int16_t object[kObjectFields];
      bool is_one = false, is_special = false;
      if (i < count && boxes.at(i)[kVisible]) {
        copy_row(object, boxes.at(i));
        const int16_t* rule = rule_of(object);
        object[kVisible] &= kInBothFrames;
        is_special = rule != nullptr && (rule[kRuleJoins] || cells_of(object, rule) > 1);
        is_one = !is_special && (rule == nullptr || by_rule(object, rule, 0));
        if (rule == nullptr) object[kKind] = 0;
      }
      const uint32_t special = lanes_.ballot(is_special);
      const int end = special ? first_bit(special) : Lanes::kCount;
      put_all(object, is_one && lanes_.lane() < end);
      base += end;
      if (special) add_special(boxes.at(base++));
    }
  }
  // Puts the objects of those lanes that have one.
  CULE_INLINE void put_all(const int16_t* object, bool has_one) {
    const uint32_t those = lanes_.ballot(has_one);
    const int at = count_ + lanes_before(lanes_, those), end = count_ + count_bits(those);
    if (has_one && at < room_) copy_row(row(at), object);
    count_ = end < room_ ? end : room_;
    left_out_ += end - count_;
    lanes_.sync();
  }
  CULE_INLINE void add_special(const int16_t* box) {
    const int16_t* rule = rule_of(box);
    const int cells = cells_of(box, rule);
    for (int i = 0; i < cells; ++i) {
      int16_t object[kObjectFields];
      copy_row(object, box);
      object[kVisible] &= kInBothFrames;
      if (!by_rule(object, rule, i)) continue;
      if (!(rule[kRuleJoins] && joined(object))) put(object);
    }
  }
  // The rule that a box fits, or null.
  CULE_INLINE const int16_t* rule_of(const int16_t* box) const {
    const int rule = box[kVisible] >> kSeenBits;
    return rule > 0 ? facts_ + rule * kObjectFactColumns : nullptr;
  }
  static CULE_INLINE int width_of(const int16_t* box, const int16_t* rule) {
    return rule[kRuleWidth] ? rule[kRuleWidth] : box[kWidth];
  }
  static CULE_INLINE int cells_of(const int16_t* box, const int16_t* rule) {
    const int pitch = rule[kRulePitch], width = width_of(box, rule);
    return pitch == 0 || box[kWidth] < width ? 1 : (box[kWidth] - width) / pitch + 1;
  }
  // Makes of a box the object that it is in a cell. Whether anything of it is to be seen.
  CULE_INLINE bool by_rule(int16_t* box, const int16_t* rule, int cell) const {
    const int width = width_of(box, rule), right = rule[kRuleAtRight] ? box[kWidth] - width : 0;
    box[kKind] = rule[kRuleKind];
    box[kX] = static_cast<int16_t>(box[kX] + rule[kRuleMoveX] + right + cell * rule[kRulePitch]);
    box[kY] = static_cast<int16_t>(box[kY] + rule[kRuleMoveY]);
    box[kWidth] = static_cast<int16_t>(width);
    if (rule[kRuleHeight]) box[kHeight] = rule[kRuleHeight];
    return clip(box, rule[kRuleTop], rule[kRuleBottom]);
  }
  // Leaves of an object what is on the screen and between two scanlines. Whether that is anything.
  CULE_INLINE bool clip(int16_t* object, int top, int bottom) const {
    const int above = top - object[kY];
    if (above > 0) {
      object[kY] = static_cast<int16_t>(top);
      object[kHeight] = static_cast<int16_t>(object[kHeight] - above);
    }
    return ObjectPlaces::clip(object, kLinePixels, bottom < lines_ ? bottom : lines_);
  }
  // Makes an object a part of one of its kind, if there is one.
  CULE_INLINE bool joined(const int16_t* object) {
    const int same = first_where(lanes_, 0, count_, [&](int i) CULE_INLINE_LAMBDA {
      return row(i)[kKind] == object[kKind];
    });
    if (same == count_) return false;
    if (lanes_.lane() == 0) unite(row(same), object);
    lanes_.sync();
    return true;
  }
  static CULE_INLINE void unite(int16_t* to, const int16_t* box) {
    for (int i = 0; i < 2; ++i) {
      const int begin = to[kX + i] < box[kX + i] ? to[kX + i] : box[kX + i];
      const int end = to[kX + i] + to[kWidth + i], its = box[kX + i] + box[kWidth + i];
      to[kX + i] = static_cast<int16_t>(begin);
      to[kWidth + i] = static_cast<int16_t>((end > its ? end : its) - begin);
    }
    to[kVisible] |= box[kVisible];
  }
};

}  // namespace cule
