"""Refuses gymnasium's wrappers that compute with arrays around an env of tensors.

An env is not told when a wrapper is put around it. But the wrapper calls the env's `reset`, which
can look at its callers.
"""

from __future__ import annotations

import sys
from types import FrameType

from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.wrappers import vector

from cule.errors import InvalidValue

# The other wrappers pass values on, or call the user's function.
WRAPPERS_OF_ARRAYS = (
    vector.DictInfoToList,
    vector.NormalizeObservation,
    vector.NormalizeReward,
    vector.RecordEpisodeStatistics,
    vector.VectorizeTransformObservation,
    vector.VectorizeTransformReward,
)


def refuse_array_wrappers(env: VectorEnv) -> None:
    """Checks the wrappers that call `reset`, which calls this function.

    Args:
        env: an env with output="torch".

    Raises:
        ValueError: one of the wrappers computes with arrays.
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
