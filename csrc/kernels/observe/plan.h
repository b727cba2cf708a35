// The plan of a step's observation: which frames it is made of, and how the step's frames lie in
// the env's two pictures.
//
// The CPU part makes the plan after it has played the step (plan_observation in kernels/play.h).
// The later phases only read it.
#pragma once

#include "console/record.h"

namespace cule {

// What the observation's newest frame is made of.
enum class NewFrame : uint8_t {
  kNone,     // there is no new frame: the episode ended before the step's last frame
  kLast,     // the last frame
  kLastTwo,  // the maximum of the last two frames, or of as many as the env pools
  // The maximum of the frame that the previous observation shows and the last frame but one, or as
  // many before the last as the env pools. The episode ended at the last frame.
  kShownAndLastButOne,
};

struct ObservationPlan {
  NewFrame new_frame : 2;
  bool clears_stack : 1;  // older frames are of another episode: they go
  // The instruction limit cut off the last frame but one, and the last went on in its picture.
  bool last_two_share_picture : 1;
  // A frame left lines undrawn, and an earlier frame of this step shows there.
  bool earlier_frames_show : 1;
  // A frame was not drawn from its first line to its last. Older frames may show there, also those
  // of earlier steps.
  bool leaves_lines : 1;
  // Which of the two pictures the first and the last frame are drawn into.
  uint8_t first_picture : 1;
  uint8_t last_picture : 1;
};
static_assert(sizeof(ObservationPlan) == 1, "all bits are used, so plans can be compared as bytes");

// A plan with `new_frame`, and nothing special about the frames.
CULE_INLINE ObservationPlan plan_of(NewFrame new_frame) {
  ObservationPlan plan{};
  plan.new_frame = new_frame;
  return plan;
}
// The first observation of an episode shows its newest frame: the last one, or the maximum of the
// `last_two`. Unless it `keeps_stack`, it shows no other.
CULE_INLINE ObservationPlan plan_of_start(bool last_two, bool keeps_stack) {
  ObservationPlan plan = plan_of(last_two ? NewFrame::kLastTwo : NewFrame::kLast);
  plan.clears_stack = !keeps_stack;
  return plan;
}

CULE_INLINE bool adds_frame(ObservationPlan plan) { return plan.new_frame != NewFrame::kNone; }

// Whether the frame that the previous observation shows is still needed: it is shown again, or the
// new frame is pooled onto it.
CULE_INLINE bool needs_shown(ObservationPlan plan) {
  return plan.new_frame == NewFrame::kNone || plan.new_frame == NewFrame::kShownAndLastButOne;
}
CULE_INLINE bool pools_onto_shown(ObservationPlan plan) {
  return plan.new_frame == NewFrame::kShownAndLastButOne;
}

// Whether the last two frames share a picture, and the observation needs the first of them. That
// one must be pooled before the second is drawn. It was cut off in this step, so earlier frames
// show: all frames are drawn, in order. The same is done if more than two frames are pooled.
CULE_INLINE bool pools_between(ObservationPlan plan) {
  return plan.last_two_share_picture &&
         (plan.new_frame == NewFrame::kLastTwo || pools_onto_shown(plan));
}

// Whether the new frame needs more than the two pictures. Then it is made in Batch::pooled.
CULE_INLINE bool needs_pooled(ObservationPlan plan) {
  return pools_onto_shown(plan) || pools_between(plan);
}

// What the observation shows once it is made.
CULE_INLINE ShownFrames shown_by(ObservationPlan plan) {
  if (needs_pooled(plan)) return ShownFrames::kKeptFrame;
  return plan.new_frame == NewFrame::kLast ? ShownFrames::kLastPicture : ShownFrames::kBothPictures;
}
// The NewFrame that shows the same frames again. They must still be in the pictures.
CULE_INLINE NewFrame frame_of_pictures(ShownFrames shown) {
  return shown == ShownFrames::kLastPicture ? NewFrame::kLast : NewFrame::kLastTwo;
}

// Which picture frame number `frame` of the step is drawn into. Only for steps in which no earlier
// frames show: each of their frames begins a picture, except perhaps the first.
CULE_INLINE uint32_t picture_of_frame(ObservationPlan plan, uint32_t frame) {
  return (plan.first_picture ^ frame) & 1;
}

}  // namespace cule
