"""The two halves of AtariEnv's step: starting it, and waiting for its results."""

from __future__ import annotations

from typing import Any, Protocol

from cule.env.batches import Batches
from cule.env.consoles import HasConsoles
from cule.env.guard import changes
from cule.env.inputs import ArrayLike
from cule.env.outputs import Step


class Sends(HasConsoles, Protocol):
    """The attributes of an AtariEnv that these methods use."""

    batches: Batches | None


def _start(env: HasConsoles, actions: Any, player_b_actions: Any, what: str) -> None:
    env.consoles.take_actions(actions, player_b_actions, what)
    env.consoles.engine.send()


# The guard says by these names which method was called.
@changes
def _step_async(env: HasConsoles, actions: Any, player_b_actions: Any) -> None:
    _start(env, actions, player_b_actions, "step_async")


@changes
def _send(env: HasConsoles, actions: Any, player_b_actions: Any) -> None:
    _start(env, actions, player_b_actions, "send")


@changes
def _step_wait(env: HasConsoles) -> Step:
    return env.consoles.receive("step_wait")


@changes
def _recv(env: HasConsoles) -> Step:
    return env.consoles.receive("recv")


def step_async(env: Sends, actions: ArrayLike, player_b_actions: ArrayLike | None = None) -> None:
    """The first half of `step`: starts the step, and returns before it is played.

    On a CPU `num_threads` threads play it, while the caller does something else. On a GPU it is
    launched on the current stream. Until `step_wait`, only `close` may be called.

    Args:
        actions: as in `step`; with a smaller `batch_size`, of the envs that were received last.
        player_b_actions: as in `step`.

    Raises:
        gymnasium.error.Error, TypeError, ValueError: as `step`.
    """
    if env.batches is not None:
        return env.batches.send(actions, player_b_actions)
    _step_async(env, actions, player_b_actions)


def step_wait(env: Sends) -> Step:
    """The second half of `step`: waits for the step, and returns what `step` returns.

    On a GPU the current stream waits, and the host does not.

    Raises:
        gymnasium.error.ClosedEnvironmentError: the env has been closed.
        gymnasium.error.NoAsyncCallError: no step is in flight.
        MemoryError, RuntimeError: what went wrong in a thread that played. Some envs may not have
            been stepped.
    """
    return _step_wait(env) if env.batches is None else env.batches.receive("step_wait")


def send(env: Sends, actions: ArrayLike, player_b_actions: ArrayLike | None = None) -> None:
    """`step_async`, under the name that ale-py's env has for it."""
    if env.batches is not None:
        return env.batches.send(actions, player_b_actions)
    _send(env, actions, player_b_actions)


def recv(env: Sends) -> Step:
    """`step_wait`, under the name that ale-py's env has for it."""
    return _recv(env) if env.batches is None else env.batches.receive("recv")
