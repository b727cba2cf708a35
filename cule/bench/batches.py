"""CPU envs under a learner: batches of envs in flight, while a network acts for others and learns.

The same learner plays with three kinds of envs: cule's groups in flight, and EnvPool's and ale-py's
asynchronous batches. A batch is received, its observations go to the learner's device, and the
actions go back, while the threads emulate the other batches.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from cule.bench.cases import Case
from cule.bench.learner import Learner
from cule.bench.systems import AleSystem, EnvPoolSystem, distinct_share, timed
from cule.env.flights import Flights
from cule.vector_env import AtariEnv


@dataclass
class Landed:
    """Results of a batch of envs.

    Attributes:
        ids: (n,) the numbers of the envs.
        observations: (n, 4, 84, 84) uint8.
        rewards: (n,).
        over: (n,) bool: an episode has ended.
    """

    ids: np.ndarray
    observations: torch.Tensor
    rewards: torch.Tensor
    over: torch.Tensor


class Envs(Protocol):
    """Envs of which batches are in flight. At first all have been reset, and are in flight."""

    num_actions: int

    def recv(self) -> Landed:
        """Waits for a batch."""

    def send(self, ids: np.ndarray, actions: np.ndarray) -> None:
        """Sends the batch that was received last, or before others that were; does not wait."""

    def close(self) -> None:
        """Frees the envs."""


class CuleEnvs:
    """Groups of an AtariEnv's envs, received in the order in which they were sent."""

    def __init__(self, case: Case):
        self.env = AtariEnv(
            case.game, case.num_envs, device="cpu", num_threads=case.num_threads,
            frameskip=case.frameskip,
        )  # fmt: skip
        self.num_actions = int(self.env.single_action_space.n)
        self.flights = Flights(self.env)
        if torch.device(case.device).type == "cuda":
            self.flights.pin_results()
        self.env.reset(seed=0)
        size = case.num_envs // case.env_groups
        groups = [slice(i, i + size) for i in range(0, case.num_envs, size)]
        self._ids = {group.start: np.arange(group.start, group.stop) for group in groups}
        # The flight of each group, or None if it has not been sent since the reset.
        self._sent: deque[tuple[slice, int | None]] = deque((group, None) for group in groups)

    def recv(self) -> Landed:
        """See Envs."""
        group, flight = self._sent.popleft()
        if flight is not None:
            self.flights.wait(flight)
        observations, rewards, terminated, truncated, _ = self.flights.shared_results(group)
        return Landed(self._ids[group.start], observations, rewards, terminated | truncated)

    def send(self, ids: np.ndarray, actions: np.ndarray) -> None:
        """See Envs."""
        group = slice(int(ids[0]), int(ids[-1]) + 1)
        self._sent.append((group, self.flights.step(group, actions)))

    def close(self) -> None:
        """See Envs."""
        self.env.close()


class HostEnvs:
    """EnvPool's or ale-py's batches, received in the order in which they are done."""

    env: Any
    num_actions: int

    def recv(self) -> Landed:
        """See Envs."""
        observations, rewards, terminated, truncated, info = self.env.recv()
        return Landed(
            info["env_id"], torch.from_numpy(observations), torch.from_numpy(rewards),
            torch.from_numpy(terminated | truncated),
        )  # fmt: skip

    def close(self) -> None:
        """See Envs."""
        self.env.close()


class EnvPoolEnvs(HostEnvs):
    """EnvPool's."""

    def __init__(self, case: Case):
        self.env = EnvPoolSystem.make(case, case.num_envs // case.env_groups)
        self.num_actions = int(self.env.action_space.n)
        self.env.async_reset()

    def send(self, ids: np.ndarray, actions: np.ndarray) -> None:
        """See Envs."""
        self.env.send(actions, ids)


class AleEnvs(HostEnvs):
    """ale-py's, all at once: a smaller batch can only be sent right after it was received."""

    def __init__(self, case: Case):
        self.env = AleSystem.make(case)
        self.num_actions = int(self.env.single_action_space.n)
        observations, info = self.env.reset(seed=0)
        none = torch.zeros(case.num_envs)
        self._first: Landed | None = Landed(
            info["env_id"], torch.from_numpy(observations), none, none.bool()
        )

    def recv(self) -> Landed:
        """See Envs."""
        if self._first is None:
            return super().recv()
        first, self._first = self._first, None
        return first

    def send(self, ids: np.ndarray, actions: np.ndarray) -> None:
        """See Envs."""
        self.env.send(actions)


class Batched:
    """A system: envs in batches, and the learner.

    Args:
        case: what is measured; its `device` is the learner's.
        envs: the envs.
        batches: how many batches they are.
    """

    name: str
    on_host = False

    def __init__(self, case: Case, envs: Envs, batches: int):
        self.envs, self.batches, self.device = envs, batches, torch.device(case.device)
        self.learner = Learner(
            envs.num_actions, case.num_envs, self.device, learns=case.mode == "with-training"
        )
        self.generator = np.random.default_rng(0)
        self.landed = [envs.recv() for _ in range(batches)]

    @staticmethod
    def check(case: Case) -> None:
        """Checks that the case can be measured.

        Raises:
            ValueError: it cannot.
        """

    def play(self, steps: int, *, random: bool = False) -> None:
        """Plays steps of all envs, with the learner's actions unless they are `random`."""
        waiting = deque(self.landed)
        for _ in range(steps * self.batches):
            batch = waiting.popleft() if waiting else self.envs.recv()
            self.envs.send(batch.ids, self._actions(batch, random))
        self.landed = [self.envs.recv() for _ in range(self.batches)]

    def _actions(self, batch: Landed, random: bool) -> np.ndarray:
        if random:
            return self.generator.integers(self.envs.num_actions, size=len(batch.ids))
        return self.learner.act(batch.ids, batch.observations, batch.rewards, batch.over)

    def seconds(self, steps: int) -> float:
        """How long steps take."""
        return timed(self.device, self.play, steps)

    def close(self) -> None:
        """Frees the envs."""
        self.envs.close()


class BatchedCule(Batched):
    """cule's."""

    name = "cule"

    def __init__(self, case: Case):
        made = CuleEnvs(case)
        self.env = made.env
        super().__init__(case, made, case.env_groups)

    def distinct_share(self) -> float:
        """See CuleSystem."""
        return distinct_share(self.env)

    def faulty_envs(self) -> int:
        """See CuleSystem."""
        return int((self.env.engine.tensors["faults"] != 0).sum())


class BatchedAle(Batched):
    """ale-py's."""

    name = AleSystem.name

    def __init__(self, case: Case):
        super().__init__(case, AleEnvs(case), 1)


class BatchedEnvPool(Batched):
    """EnvPool's."""

    name = EnvPoolSystem.name

    @staticmethod
    def check(case: Case) -> None:
        """See EnvPoolSystem."""
        EnvPoolSystem.check(case)

    def __init__(self, case: Case):
        self.check(case)
        super().__init__(case, EnvPoolEnvs(case), case.env_groups)
