// What a step's observation is made of, and how its frames lie in the env's two pictures.
//
// The CPU part makes the plan when it has played the step (plan_observation in kernels/play.h). The
// phases after it only ask.
#pragma once

#include "console/record.h"

namespace cule {

// What the observation's newest frame is made of.
enum class NewFrame : uint8_t {
  kNone,     // there is no new one: the episode ended inside the step
  kLast,     // the last frame
  kLastTwo,  // the maximum of the last two frames
  // The maximum of the frame that the observation before shows and the last frame but one: the
  // episode ended at the last.
  kShownAndLastButOne,
};

struct ObservationPlan {
  NewFrame new_frame : 2;
  bool begins_episode : 1;  // older frames of the stack are black
  // The instruction limit cut off the last frame but one, and the last went on in its picture.
  bool last_two_share_picture : 1;
  // A frame left lines undrawn, so that an earlier frame of this step shows there.
  bool earlier_frames_show : 1;
  // A frame was not drawn from its first line to its last: older ones may show, of any step.
  bool leaves_lines : 1;
  // Which of the two pictures the first and the last frame are drawn into.
  uint8_t first_picture : 1;
  uint8_t last_picture : 1;
};
static_assert(sizeof(ObservationPlan) == 1, "its bits are all used, so that plans can be compared");

// Of frames of which nothing else has to be known.
CULE_INLINE ObservationPlan plan_of(NewFrame new_frame) {
  ObservationPlan plan{};
  plan.new_frame = new_frame;
  return plan;
}
// The first observation of an episode shows its newest frame alone.
CULE_INLINE ObservationPlan plan_of_start() {
  ObservationPlan plan = plan_of(NewFrame::kLast);
  plan.begins_episode = true;
  return plan;
}

CULE_INLINE bool adds_frame(ObservationPlan plan) { return plan.new_frame != NewFrame::kNone; }

// Whether the frame that the observation before shows goes on being shown, or into the new one.
CULE_INLINE bool needs_shown(ObservationPlan plan) {
  return plan.new_frame == NewFrame::kNone || plan.new_frame == NewFrame::kShownAndLastButOne;
}
CULE_INLINE bool pools_onto_shown(ObservationPlan plan) {
  return plan.new_frame == NewFrame::kShownAndLastButOne;
}

// Whether the last two frames share a picture and the observation needs the first of them, which
// has to be pooled before the second is drawn. The first was then cut off in this step, so that
// earlier frames show, and both are drawn, one after the other.
CULE_INLINE bool pools_between(ObservationPlan plan) {
  return plan.last_two_share_picture &&
         (plan.new_frame == NewFrame::kLastTwo || pools_onto_shown(plan));
}

// Whether the new frame is made of more than the two pictures, so that it is made in Batch::pooled.
CULE_INLINE bool needs_pooled(ObservationPlan plan) {
  return pools_onto_shown(plan) || pools_between(plan);
}

// What the observation shows once it is made.
CULE_INLINE ShownFrames shown_by(ObservationPlan plan) {
  if (needs_pooled(plan)) return ShownFrames::kKeptFrame;
  return plan.new_frame == NewFrame::kLast ? ShownFrames::kLastPicture : ShownFrames::kBothPictures;
}
// The new frame that would show the same once more, made of the pictures.
CULE_INLINE NewFrame frame_of_pictures(ShownFrames shown) {
  return shown == ShownFrames::kLastPicture ? NewFrame::kLast : NewFrame::kLastTwo;
}

// Which picture frame number `frame` of the step is drawn into, where no earlier frames show: then
// each begins a picture, except perhaps the first.
CULE_INLINE uint32_t picture_of_frame(ObservationPlan plan, uint32_t frame) {
  return (plan.first_picture ^ frame) & 1;
}

}  // namespace cule
