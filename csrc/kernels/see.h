// The objects that a step or a reset shows, if they are asked for: boxes of the last two frames
// (tia/render/object_frames.h), and what they are by the facts of the game.
//
// A GPU finds the boxes of a step's last two frames from the log of writes and the TIA's state at
// their start, as drawing does. A CPU finds them while it draws (cpu/draw_frames.h). Starts of
// episodes are seen as they are played (console/session.h), or copied from the pool. `list_objects`
// then makes an env's list.
#pragma once

#include <new>

#include "kernels/draw.h"
#include "kernels/object_boxes.h"

namespace cule {

// Where the boxes of frame number `frame` of a step go: those of the last two are kept.
CULE_INLINE bool is_seen(const StepTrace& trace, uint32_t frame) {
  return frame + 2 >= trace.frames;
}
CULE_INLINE FrameBoxes boxes_of_frame(const Batch& batch, size_t env, uint32_t frame) {
  const ObjectFrames frames = object_frames_of(batch, env);
  return frame + 1u == batch.traces[env].frames ? frames.last() : frames.before();
}

// Before a step of one frame: the last becomes the one before it.
CULE_INLINE void move_boxes_on(const Batch& batch, size_t env) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries != 0 && trace.frames == 1) object_frames_of(batch, env).move_on();
}

// The memory in which a thread finds boxes: on a GPU the multiprocessor's own.
struct SeeingRoom {
  alignas(ObjectView) unsigned char view[sizeof(ObjectView)];
  LineBits words[LineRoom<LineBits>::kSize];
  SegmentStart at;
};

// Finds the boxes of one frame of a step.
CULE_HD inline void see_frame(const Batch& batch, size_t env, const Recording& recording,
                              uint32_t frame, SeeingRoom& room) {
  const ObjectFrames frames = object_frames_of(batch, env);
  for (LineBits& word : room.words) word = 0;
  ObjectView& view = *new (room.view) ObjectView(
      frames.settings, boxes_of_frame(batch, env, frame), frames.lines, {room.words, 1});
  const size_t slot = static_cast<size_t>(frame) * kSegments;
  if (recording.starts.entry_of(slot) == kNoSegment) return;
  draw_segments(batch, env, recording, slot, kSegments, view, room.at);
  view.finish();
}

// On a GPU: the two parts of a step, in threads of their own.
CULE_HD inline void see_frame_before(const Batch& batch, size_t env, const Recording& recording,
                                     SeeingRoom& room) {
  const StepTrace& trace = batch.traces[env];
  if (trace.entries != 0 && trace.frames > 1)
    see_frame(batch, env, recording, trace.frames - 2u, room);
}
CULE_HD inline void see_last_frame(const Batch& batch, size_t env, const Recording& recording,
                                   SeeingRoom& room) {
  move_boxes_on(batch, env);
  const StepTrace& trace = batch.traces[env];
  if (trace.entries != 0 && trace.frames > 0)
    see_frame(batch, env, recording, trace.frames - 1u, room);
}

// The columns of a rule, and which of them have a least and a greatest value. Rules name what
// boxes are: a box is of the first rule that it fits.
enum ObjectRule : int { kRuleKind, kRuleJoins, kRuleColor, kRuleRanges };
CULE_INLINE bool fits_rule(const int16_t* box, const int16_t* rule) {
  if (rule[kRuleColor] >= 0 && rule[kRuleColor] != box[kColor]) return false;
  const int16_t* range = rule + kRuleRanges;
  for (int field = kX; field <= kHeight; ++field, range += 2) {
    if (box[field] < range[0] || box[field] > range[1]) return false;
  }
  return true;
}
CULE_INLINE int rule_of(const int16_t* box, const int16_t* facts) {
  for (int rule = 0; rule < facts[kNumRules]; ++rule) {
    if (fits_rule(box, facts + (rule + 1) * kObjectFactColumns)) return rule;
  }
  return -1;
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

// Makes the list of an env's objects, in rows that are clear.
class ObjectList {
 public:
  CULE_INLINE ObjectList(int16_t* rows, int room, const int16_t* facts)
      : rows_(rows), room_(room), facts_(facts) {}

  CULE_INLINE int left_out() const { return left_out_; }

  // Adds the boxes of two frames. `seen` of a box: bit 0, in the last frame; bit 1, in the other.
  CULE_INLINE void add(const FrameBoxes& last, const FrameBoxes& before) {
    left_out_ = last.left_out() + before.left_out();
    for (int i = 0; i < last.count(); ++i) last.at(i)[kVisible] = 1;
    for (int i = 0; i < before.count(); ++i) {
      int16_t* box = before.at(i);
      box[kVisible] = 2;
      for (int k = 0; k < last.count(); ++k) {
        if (last.at(k)[kVisible] != 1 || !is_same_object(box, last.at(k))) continue;
        last.at(k)[kVisible] = 3;
        box[kVisible] = 0;
        break;
      }
    }
    for (int i = 0; i < last.count(); ++i) add(last.at(i));
    for (int i = 0; i < before.count(); ++i) {
      if (before.at(i)[kVisible]) add(before.at(i));
    }
  }

 private:
  int16_t* rows_;
  int room_;
  const int16_t* facts_;
  int count_ = 0, left_out_ = 0;

  CULE_INLINE int16_t* row(int i) const { return rows_ + i * kObjectFields; }

  // Adds a box, or makes it a part of one that is there if its rule joins boxes.
  CULE_INLINE void add(const int16_t* box) {
    const int number = rule_of(box, facts_);
    const int16_t* rule = facts_ + (number + 1) * kObjectFactColumns;
    const int16_t kind = number < 0 ? 0 : rule[kRuleKind];
    if (number >= 0 && rule[kRuleJoins]) {
      for (int i = 0; i < count_; ++i) {
        if (row(i)[kKind] == kind) return unite(row(i), box);
      }
    }
    if (count_ == room_) {
      ++left_out_;
      return;
    }
    int16_t* to = row(count_++);
    for (int field = 0; field < kObjectFields; ++field) to[field] = box[field];
    to[kKind] = kind;
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

// Makes an env's list of objects from the boxes of its last two frames. All lanes clear the rows, and
// the first fills them.
template <class Lanes>
CULE_INLINE void list_objects(const Batch& batch, size_t env, const Lanes& lanes) {
  int16_t* rows = objects_of(batch, env);
  for (size_t i = static_cast<size_t>(lanes.lane()); i < object_numbers(batch); i += Lanes::kCount)
    rows[i] = 0;
  lanes.sync();
  if (lanes.lane() != 0) return;
  const ObjectFrames frames = object_frames_of(batch, env);
  ObjectList list(rows, batch.max_objects, frames.settings);
  list.add(frames.last(), frames.before());
  batch.objects_left_out[env] = list.left_out();
}

}  // namespace cule
