"""Refuses wrappers that would spoil an env's tensors: that compute with arrays, or hand views on.

An env is not called when a wrapper is put around it. But the wrapper calls the env's `reset`, which
can look at its callers.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.wrappers import vector

from cule.env import guard
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
# Packages whose wrappers hand on what they get, to code that keeps it.
HAND_ON = ("gymnasium", "skrl", "torchrl")


def refuse_wrappers(env: VectorEnv, output: str) -> None:
    """Checks the wrappers that call `reset`, which calls this function.

    Args:
        env: an env of tensors.
        output: its "torch" or "torch_shared".

    Raises:
        ValueError: one of the wrappers computes with arrays; or, with "torch_shared", is another
            library's.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if caller is not env and frame.f_globals is not vars(guard):
            _refuse_arrays(caller, output)
            if output == "torch_shared":
                _refuse_handing_on(caller)
            if not isinstance(caller, VectorWrapper) or caller.unwrapped is not env:
                return
        frame = frame.f_back


def _refuse_arrays(wrapper: Any, output: str) -> None:
    if isinstance(wrapper, WRAPPERS_OF_ARRAYS):
        name = type(wrapper).__name__
        own = (
            "; cule.EpisodeStatistics is the one for tensors"
            if name == "RecordEpisodeStatistics"
            else ""
        )
        raise InvalidValue(
            f"expected an env with output='numpy' in gymnasium's {name}, which computes with "
            f"arrays, got one with output={output!r}{own}"
        )


def _refuse_handing_on(caller: Any) -> None:
    package = type(caller).__module__.partition(".")[0]
    if package in HAND_ON:
        raise InvalidValue(
            f"expected an env with output='torch' in {package}'s {type(caller).__name__}, which "
            "hands on what the env returns, got one with output='torch_shared', whose tensors the "
            "next call overwrites"
        )
