"""Steps of an AtariEnv: as one call, or as two halves between which the caller goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from gymnasium import error

from cule.env import compiled
from cule.env.consoles import Array, Consoles
from cule.env.guard import changes
from cule.env.inputs import Inputs

if TYPE_CHECKING:
    from cule.vector_env import AtariEnv

# What a call takes.
ArrayLike = torch.Tensor | np.ndarray | Sequence[Any]
# What a step returns.
Step = tuple[Array, Array, Array, Array, dict[str, Any]]


class Playing(Consoles):
    """The part of AtariEnv that plays steps."""

    _inputs: Inputs

    def step(
        self, actions: ArrayLike, player_b_actions: ArrayLike | None = None
    ) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Plays one step of `frameskip` frames in every env.

        If it is interrupted, as by Ctrl-C, it has played either the whole step or nothing of it.

        Args:
            actions: (num_envs,) integers below `single_action_space.n`; or, if `continuous`,
                (num_envs, 3) float32: radius from 0 to 1, angle in radians, fire. A tensor on the
                env's device, or an array. The values are checked on the CPU only: a GPU plays a
                wrong number as a no-op, and clamps the radius.
            player_b_actions: (num_envs,) integers from 0 to 17 (see cule.ACTIONS): what the second
                player does, in the envs whose game has one (docs/games.md lists them).

        Returns:
            observations (num_envs, stack_num, img_height, img_width) uint8, rewards (num_envs,)
            int32, terminated and truncated (num_envs,) bool, and a dict of (num_envs,) arrays:
            `env_id`, `lives`, `frame_number`, `episode_frame_number`, `raw_reward` (not clipped),
            `fault` (see cule.FAULTS), and in SAME_STEP `final_obs`. Two of them, bool, say what
            happened to the game: `game_over`, that it ended in this step, so that a reset follows
            (a lost life that `life_loss_info` reports does not end it); and `new_game`, that this
            step began one, as SAME_STEP does after a game's end, and NEXT_STEP a step later.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.ResetNeeded: it has not been reset.
            gymnasium.error.AlreadyPendingCallError: a step is in flight.
            TypeError, ValueError: the actions' dtype, shape, device or range is not as described,
                or no game has a second player.
        """
        if torch.compiler.is_dynamo_compiling():
            return compiled.step(cast("AtariEnv", self), actions, player_b_actions)
        return self._step(actions, player_b_actions)

    @changes
    def _step(self, actions: ArrayLike, player_b_actions: ArrayLike | None) -> Step:
        self._play(actions, player_b_actions)
        return self._results()

    @changes
    def step_async(self, actions: ArrayLike, player_b_actions: ArrayLike | None = None) -> None:
        """The first half of `step`: starts the step, and returns before it is played.

        On a CPU `num_threads` threads play it, while the caller does something else. On a GPU it is
        launched on the current stream. Until `step_wait`, only `close` may be called.

        Args:
            actions: as in `step`.
            player_b_actions: as in `step`.

        Raises:
            What `step` raises.
        """
        self._send("step_async", actions, player_b_actions)

    @changes
    def step_wait(self) -> Step:
        """The second half of `step`: waits for the step, and returns what `step` returns.

        On a GPU the current stream waits, and the host does not.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.NoAsyncCallError: no step is in flight.
            MemoryError, RuntimeError: what went wrong in a thread that played. Some envs may not
                have been stepped.
        """
        return self._receive("step_wait")

    @changes
    def send(self, actions: ArrayLike, player_b_actions: ArrayLike | None = None) -> None:
        """`step_async`, under the name that ale-py's env has for it."""
        self._send("send", actions, player_b_actions)

    @changes
    def recv(self) -> Step:
        """`step_wait`, under the name that ale-py's env has for it."""
        return self._receive("recv")

    def _send(self, what: str, actions: ArrayLike, player_b_actions: ArrayLike | None) -> None:
        self._check_idle(what)
        self._play(actions, player_b_actions, self.engine.send)

    def _receive(self, what: str) -> Step:
        self._check_open(what)
        if not self.engine.in_flight:
            raise error.NoAsyncCallError(f"expected step_async() before {what}()", "step")
        self.engine.wait()
        results = self._results()
        self.engine.receive()
        return results

    def _play(
        self,
        actions: ArrayLike,
        player_b_actions: ArrayLike | None,
        play: Callable[[], None] | None = None,
    ) -> None:
        """Checks the actions and plays them. An error leaves all envs as they were.

        Args:
            actions: as in `step`.
            player_b_actions: as in `step`.
            play: what plays them; None: the engine's `step`.
        """
        self._check_idle("step")
        self._check_started("step")
        self._inputs.set(actions, player_b_actions)
        (play or self.engine.step)()

    def _results(self) -> Step:
        """The results of the last step."""
        self._check_open("step")  # once more, as a signal's handler may have closed it
        self._renderer.step()
        return self._outputs.after_step()
