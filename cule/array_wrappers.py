"""gymnasium's wrappers that compute with arrays say so when they are put around an env of tensors.

A wrapper does not tell its env that it wraps it. What it can be known by is the first `reset`,
which comes from it.
"""

from __future__ import annotations

import sys
from types import FrameType

from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.wrappers import vector

from cule.errors import InvalidValue

# Others hand on what they are given, or what a function of the user's makes of it.
WRAPPERS_OF_ARRAYS = (
    vector.DictInfoToList,
    vector.NormalizeObservation,
    vector.NormalizeReward,
    vector.RecordEpisodeStatistics,
    vector.VectorizeTransformObservation,
    vector.VectorizeTransformReward,
)


def refuse_array_wrappers(env: VectorEnv) -> None:
    """Looks at the wrappers that a call of `reset`, which calls this, has come through.

    Args:
        env: one whose output are tensors.

    Raises:
        ValueError: one of them computes with arrays.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if caller is env:
            frame = frame.f_back
            continue
        if not isinstance(caller, VectorWrapper) or caller.unwrapped is not env:
            return
        if isinstance(caller, WRAPPERS_OF_ARRAYS):
            name = type(caller).__name__
            own = (
                "; cule.EpisodeStatistics is the one for tensors"
                if name == "RecordEpisodeStatistics"
                else ""
            )
            raise InvalidValue(
                f"expected an env with output='numpy' in gymnasium's {name}, which computes with "
                f"arrays, got one with output='torch'{own}"
            )
        frame = frame.f_back
