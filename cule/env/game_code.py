"""Methods of AtariEnv about where and how a GPU runs its game: multiprocessors, compiled code."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import torch

from cule import arguments
from cule.console import Group
from cule.console.console import Snapshot
from cule.engine import Engine
from cule.env.consoles import HasConsoles
from cule.env.guard import changes
from cule.state import State

# How many envs are looked at to find out what all of them execute.
LOOKED_AT = 64


@changes
def reserve(env: HasConsoles, multiprocessors: int, *, ordered: bool | None = None) -> bool:
    """Reserves another number of multiprocessors for emulation (see `multiprocessors`).

    Results are the same before and after. A CUDA graph still has the kernels that it captured.

    Args:
        multiprocessors: how many are reserved from the next step on.
        ordered: whether a compiled game plays envs together that are alike: that executed as
            many instructions in their last frame. It is faster where envs do different things.
            None: some steps try both and are timed; a CUDA graph captures what was the faster
            one until then, at first True.

    Returns:
        Whether they are reserved; False: the game would need another kernel, as with few envs on
        many multiprocessors.

    Raises:
        gymnasium.error.ClosedEnvironmentError: the env has been closed.
        TypeError, ValueError: there are not so many, or too few for all envs, or the envs are
            on a CPU.
    """
    env.consoles.check_open("reserve")
    number = arguments.integer("multiprocessors", multiprocessors, 1)
    return env.consoles.engine.reserve(
        number, None if ordered is None else arguments.flag("ordered", ordered)
    )


@changes
def wait_until_translated(env: HasConsoles, timeout: float | None = None) -> bool:
    """Waits for the game to be compiled for the GPU, if it is being compiled (see `translate`).

    Results are the same before and after. Call it before you measure steps or capture them in a
    CUDA graph, which runs the kernels that it captured.

    Args:
        timeout: seconds of waiting at most. Then steps go on with what is compiled, and change
            over to the rest when it is. None: no limit.

    Returns:
        Whether steps run the compiled game; False: they are interpreted, and without a timeout
        they stay so.

    Raises:
        gymnasium.error.ClosedEnvironmentError: the env has been closed.
        RuntimeError: a CUDA graph is being captured.
        TypeError, ValueError: the timeout is no number of seconds.

    Warns:
        UserWarning: the game cannot be compiled, as there is no run-time compiler, or cannot be
            loaded.
    """
    env.consoles.check_open("wait_until_translated")
    if timeout is not None:
        timeout = arguments.number("timeout", timeout, 0, threading.TIMEOUT_MAX)
    return env.consoles.engine.wait_until_translated(timeout)


@changes
def translate_again(env: HasConsoles, look: bool = True) -> bool:
    """Compiles the game for the GPU again if its envs execute much that is not compiled yet.

    A game is compiled with the code that random play executes. A good player gets further, to
    other waves and mazes, whose code is interpreted and takes several times as long. So call
    this from time to time: cule.train does, at first after 500 steps. It copies the states of some
    envs; a thread plays on from them, and compiles the game if that pays. The first step after
    that, or the next call, loads the new code. Results are the same before and after.

    Args:
        look: whether to look for code that is not compiled; False: only load what was compiled
            since the last call.

    Returns:
        Whether steps run other code than after the last call of this or of
        `wait_until_translated`. A CUDA graph runs the kernels that it captured, so capture it
        again.

    Raises:
        gymnasium.error.ClosedEnvironmentError: the env has been closed.

    Warns:
        UserWarning: the new code cannot be compiled or loaded.
    """
    consoles = env.consoles
    consoles.check_idle("translate_again")
    looks = look and consoles.started
    return consoles.engine.translate_again(
        partial(_some_states, consoles.engine) if looks else None
    )


def _some_states(engine: Engine) -> list[tuple[Group, Snapshot]]:
    """The states of LOOKED_AT envs, which are spread over all."""
    count = min(engine.num_envs, LOOKED_AT)
    chosen = np.linspace(0, engine.num_envs - 1, count).astype(np.int64)
    return State.take(engine, torch.from_numpy(chosen).to(engine.device)).consoles()
