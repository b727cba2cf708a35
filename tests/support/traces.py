"""What a step's CPU part tells the phases after it: `StepTrace` and its `ObservationPlan`
(csrc/kernels/batch.h, csrc/kernels/observe/plan.h), read from a batch's tensor `traces`."""

from __future__ import annotations

import torch

# Words of a StepTrace.
ENTRIES, SPARE = 0, 4
# The byte with its plan, whose lowest bits are `new_frame`, and others of its bits.
_PLAN = 10
_NEW_FRAME, _SHOWN_AND_LAST_BUT_ONE = 3, 3
_LAST_TWO_SHARE_PICTURE, _EARLIER_FRAMES_SHOW, _LEAVES_LINES = 8, 16, 32


def trace_words(traces: torch.Tensor) -> torch.Tensor:
    """(..., words) int32."""
    return traces.view(torch.int32)


def _plans(traces: torch.Tensor) -> torch.Tensor:
    return traces.view(torch.uint8)[..., _PLAN]


def pools_onto_shown(traces: torch.Tensor) -> torch.Tensor:
    """(...) bool: whether the frame of the observation before goes into the new one."""
    return _plans(traces) & _NEW_FRAME == _SHOWN_AND_LAST_BUT_ONE


def last_two_share_picture(traces: torch.Tensor) -> torch.Tensor:
    """(...) bool: whether the last frame went on in the picture of one that was cut off."""
    return _plans(traces) & _LAST_TWO_SHARE_PICTURE > 0


def earlier_frames_show(traces: torch.Tensor) -> torch.Tensor:
    """(...) bool: whether a frame left lines undrawn on which an earlier one of the step shows."""
    return _plans(traces) & _EARLIER_FRAMES_SHOW > 0


def leaves_lines(traces: torch.Tensor) -> torch.Tensor:
    """(...) bool: whether a frame was not drawn from its first line to its last."""
    return _plans(traces) & _LEAVES_LINES > 0
