"""`AtariEnv(batch_size=...)`: steps some of the envs, those that are done first, on a CPU."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import error

from cule import arguments
from cule.env.consoles import HasConsoles
from cule.env.flights import Flights
from cule.env.outputs import Array, Step, for_each
from cule.errors import InvalidValue, shown

_OF_STEPS = ("raw_reward", "played_action", "repeated_frames")


class HasBatches(HasConsoles, Protocol):
    """The attributes of an AtariEnv that this file uses."""

    batch_size: int


class Batches:
    """Each env on its own; a batch has the `batch_size` envs that are done first, as in ale-py.

    Args:
        env: the AtariEnv, on a CPU.
    """

    def __init__(self, env: HasBatches):
        self._env, self._size = env, env.batch_size
        self._flights = Flights(env)
        self._fresh = np.zeros(env.consoles.engine.num_envs, bool)
        self._received: np.ndarray | None = None

    def reset(self, seed: Any, options: Any) -> tuple[Array, dict[str, Any]]:
        """Resets all envs; returns the observations and the info of those that are done first.

        Raises:
            ValueError: there are options.
            What AtariEnv.reset raises. Envs in flight then go on as they were.
        """
        if options:
            raise InvalidValue(
                f"expected no options of reset with batch_size < num_envs, got {shown(options)}"
            )
        self._env.consoles.check_open("reset")
        if seed is not None:
            arguments.seeds(seed, None, len(self._fresh))
        self._flights.settle()
        self._received = None
        self._flights.reset(slice(None), seed, singly=True)
        self._fresh[:] = True
        observations, _, _, _, infos = self.receive("reset")
        names = [name for name in infos if name.lstrip("_") not in _OF_STEPS]
        return observations, {name: infos[name] for name in names}

    def send(self, actions: Any, player_b_actions: Any) -> None:
        """Starts a step of the envs that were received last, in their order.

        Raises:
            gymnasium.error.AlreadyPendingCallError: they have their actions already.
            ValueError: a second player has actions.
            What AtariEnv.step raises.
        """
        self._env.consoles.check_open("step")
        self._env.consoles.check_started("step")
        if player_b_actions is not None:
            raise InvalidValue("expected no player_b_actions with batch_size < num_envs, got some")
        if self._received is None:
            raise error.AlreadyPendingCallError(
                "expected a batch to be received before actions are sent, got actions", "step"
            )
        self._flights.step(self._received, actions, singly=True)
        self._fresh[self._received] = False
        self._received = None

    def receive(self, what: str) -> Step:
        """Waits for `batch_size` envs; returns their results, in the order in which they were done.

        Raises:
            gymnasium.error.NoAsyncCallError: the envs that were received last have no actions yet,
                or too few are in flight.
        """
        self._env.consoles.check_open(what)
        if self._received is not None:
            raise error.NoAsyncCallError(
                f"expected actions for the batch that was received last before {what}(), got none",
                "step",
            )
        if self._flights.flying < self._size:
            raise error.NoAsyncCallError(
                f"expected actions of {self._size} envs before {what}(), got those of "
                f"{self._flights.flying}",
                "step",
            )
        ids = self._flights.take(self._size)
        rows = torch.from_numpy(ids.astype(np.int64))
        observations, rewards, terminated, truncated, infos = self._flights.results(rows)
        played = torch.from_numpy(~self._fresh[ids])  # the others have what came before a reset
        of_steps = [infos[name] for name in _OF_STEPS if name in infos]
        for values in (rewards, terminated, truncated, *of_steps):
            values.mul_(played)
        infos |= {f"_{name}": torch.ones(len(ids), dtype=torch.bool) for name in infos}
        outputs = self._env.consoles.outputs
        give, done = outputs.give, terminated | truncated
        if outputs.final is not None and bool(done.any()):
            final = for_each(lambda part: part[rows], outputs.final)
            infos |= {"final_obs": final, "_final_obs": done}
        self._received = ids
        return (
            for_each(give, observations), give(rewards), give(terminated), give(truncated),
            {name: for_each(give, value) for name, value in infos.items()},
        )  # fmt: skip
