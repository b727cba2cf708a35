"""Two ways to step an EnvPool's envs: all at once, or each as soon as there is an action for it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import error

from cule.arguments import array
from cule.env.flights import Flights
from cule.errors import InvalidValue
from cule.vector_env import AtariEnv


@dataclass
class Rows:
    """Results of some envs, a row each.

    Attributes:
        ids: (n,) int32, the numbers of the envs.
        fresh: (n,) bool: whether the row is the result of a reset; else it is that of a step.
        observations: (n, stack_num, ...) uint8.
        rewards, raw_rewards: (n,) int32, the second not clipped; 0 after a reset.
        terminated: (n,) bool; False after a reset.
        over: (n,) bool: the game is over; False after a reset.
        lives: (n,) int32.
        ram: (n, 128) uint8.
        frames: (n,) int32: of the steps of these episodes; the resets' no-ops do not count.
    """

    ids: np.ndarray
    fresh: np.ndarray
    observations: np.ndarray
    rewards: np.ndarray
    raw_rewards: np.ndarray
    terminated: np.ndarray
    over: np.ndarray
    lives: np.ndarray
    ram: np.ndarray
    frames: np.ndarray

    def __getitem__(self, places: np.ndarray) -> Rows:
        return Rows(*(getattr(self, field.name)[places] for field in fields(self)))


class Stepping(Protocol):
    """A way to step envs."""

    def reset(self, ids: np.ndarray, seed: Any) -> None:
        """Starts new episodes; `recv` gives their first observations.

        Args:
            ids: (n,) which envs.
            seed: one for each of them, in their order; or one for all, where the i-th of them in
                ascending order gets `seed + i`; None: as they are.

        Raises:
            TypeError, ValueError, gymnasium.error.ResetNeeded: as AtariEnv.reset.
        """

    def send(self, ids: np.ndarray, actions: np.ndarray) -> None:
        """Starts a step.

        Raises:
            TypeError, ValueError: the actions are wrong.
        """

    def recv(self) -> Rows:
        """The results of the envs that are done."""

    def settle(self) -> None:
        """Waits for all envs, and drops what was not received."""


class Together:
    """All envs at once.

    Args:
        env: with output="numpy".
    """

    def __init__(self, env: AtariEnv):
        self.env = env
        self._ids = np.arange(env.num_envs, dtype=np.int32)
        self._fresh: Rows | None = None

    def reset(self, ids: np.ndarray, seed: Any) -> None:
        """See Stepping; waits for the reset."""
        mask = np.zeros(self.env.num_envs, bool)
        mask[ids] = True
        options = None if mask.all() else {"reset_mask": mask}
        if np.shape(seed) == ids.shape:
            # AtariEnv has them in ascending order of the envs.
            seed = array("seed", seed)[np.argsort(ids)]
        observations, info = self.env.reset(seed=seed, options=options)
        none = np.zeros(self.env.num_envs, np.int32)
        self._fresh = Rows(
            self._ids, mask, observations, none, none, none.astype(bool), info["game_over"],
            info["lives"], self.env.get_ram(), self._frames(),
        )[ids]  # fmt: skip

    def send(self, ids: np.ndarray, actions: np.ndarray) -> None:
        """See Stepping.

        Raises:
            ValueError: envs are left out.
        """
        if not np.array_equal(ids, self._ids):
            order = np.argsort(ids)
            if not np.array_equal(ids[order], self._ids):
                raise InvalidValue(
                    f"expected env_id to name each of the {self.env.num_envs} envs once, "
                    f"got {ids.tolist()}"
                )
            actions = actions[order]
        self.env.step_async(actions)

    def recv(self) -> Rows:
        """See Stepping: of all envs in ascending order, or of those that were reset."""
        if self._fresh is not None:
            rows, self._fresh = self._fresh, None
            return rows
        observations, rewards, terminated, _, info = self.env.step_wait()
        return Rows(
            self._ids, np.zeros(self.env.num_envs, bool), observations, rewards, info["raw_reward"],
            terminated, info["game_over"], info["lives"], self.env.get_ram(), self._frames(),
        )  # fmt: skip

    def settle(self) -> None:
        """See Stepping."""
        self._fresh = None
        self.env.consoles.check_open("settle")
        if self.env.engine.in_flight:
            self.env.step_wait()

    def _frames(self) -> np.ndarray:
        return self.env.engine.contents.elapsed_frames().cpu().numpy().copy()


class Singly:
    """Each env on its own; a batch has those that are done first.

    Args:
        env: on the CPU.
        batch_size: how many envs `recv` waits for.
    """

    def __init__(self, env: AtariEnv, batch_size: int):
        self.env, self.batch_size = env, batch_size
        self.flights = Flights(env)
        self._fresh = np.zeros(env.num_envs, bool)

    def reset(self, ids: np.ndarray, seed: Any) -> None:
        """See Stepping; does not wait."""
        self.flights.reset(ids, seed, singly=True)
        self._fresh[ids] = True

    def send(self, ids: np.ndarray, actions: np.ndarray) -> None:
        """See Stepping."""
        self.flights.step(ids, actions, singly=True)
        self._fresh[ids] = False

    def recv(self) -> Rows:
        """See Stepping: of `batch_size` envs, in the order in which they were done.

        Raises:
            gymnasium.error.NoAsyncCallError: fewer envs are in flight, so that it would wait
                forever.
        """
        if self.flights.flying < self.batch_size:
            raise error.NoAsyncCallError(
                f"expected at least batch_size ({self.batch_size}) envs with an action or a reset "
                f"before recv(), got {self.flights.flying}",
                "step",
            )
        ids = self.flights.take(self.batch_size)
        places = torch.from_numpy(ids.astype(np.int64))
        observations, rewards, terminated, _, info = self.flights.results(places)
        engine = self.env.engine
        rows = Rows(
            ids, self._fresh[ids], *(
                tensor.numpy()
                for tensor in (
                    observations, rewards, info["raw_reward"], terminated, info["game_over"],
                    info["lives"], engine.tensors["ram"][places],
                    engine.contents.elapsed_frames()[places],
                )
            ),
        )  # fmt: skip
        played = ~rows.fresh
        return replace(
            rows, rewards=rows.rewards * played, raw_rewards=rows.raw_rewards * played,
            terminated=rows.terminated & played,
        )  # fmt: skip

    def settle(self) -> None:
        """See Stepping."""
        self.flights.settle()
