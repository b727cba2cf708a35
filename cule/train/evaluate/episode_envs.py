"""The envs in which an evaluation plays its episodes: cule's own, or ale-py's.

Both play the same episodes: without sticky actions each frame and reward is the same. With them the
actions that repeat are drawn from other random numbers (design/ale_differences.md). cule's take 0.1
s to make and emulate several times as many frames a second; each of ale-py's takes 0.1 s, in which
no other thread can be in Python. ale-py's are there to check a score with another emulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch

from cule.env.flights import Flights
from cule.rom import find_game
from cule.train.envs.emulator import EMULATORS, FRAMESKIP, STACK
from cule.vector_env import AtariEnv

SHAPE = (STACK, 84, 84)


class EpisodeEnvs(Protocol):
    """Envs of which those step whose episode is not over.

    Attributes:
        num_envs: how many they are.
        num_actions: the size of the action space.
        observations: (num_envs, 4, 84, 84) uint8, the newest of each; pinned if they are for a GPU.
    """

    num_envs: int
    num_actions: int
    observations: torch.Tensor

    def reset(self, seed: int, count: int) -> None:
        """Begins an episode in each of the first `count` envs; env i has the seed `seed + i`."""

    def step(self, envs: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Plays a step in some envs.

        Args:
            envs: (n,) int64, the numbers of the envs, in ascending order.
            actions: (n,) int64.

        Returns:
            (n,) float64, the rewards, not clipped; (n,) bool, whether the episode is over.
        """

    def close(self) -> None:
        """Frees the envs."""


class CuleEnvs:
    """An AtariEnv on the CPU, of which some envs step.

    Args:
        game: the name of the game.
        num_envs: how many envs there are.
        num_threads: how many of them emulate at the same time.
        for_gpu: the observations are in pinned memory.
        options: keywords that AtariEnv and ale_py.AtariVectorEnv have in common.
    """

    def __init__(
        self, game: str, num_envs: int, num_threads: int, for_gpu: bool, **options: Any
    ) -> None:
        # Each reset is emulated: one that copies a prepared start has other numbers of no-ops.
        self._env = AtariEnv(
            game, num_envs, "cpu", num_threads=num_threads, reset_pool_size=0,
            output="torch_shared", progress=False, **options,
        )  # fmt: skip
        self.num_envs, self.num_actions = num_envs, int(self._env.single_action_space.n)
        self._flights = Flights(self._env)
        if for_gpu:
            self._flights.pin_results()
        self.observations, *results, _ = self._flights.shared_results(slice(None))
        self._rewards, *self._ends = (result.numpy() for result in results)

    def reset(self, seed: int, count: int) -> None:
        """As in EpisodeEnvs; the other envs begin an episode, too, which nobody plays."""
        self._env.reset(seed=np.arange(seed, seed + self.num_envs))

    def step(self, envs: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in EpisodeEnvs."""
        self._flights.wait(self._flights.step(envs, actions))
        terminated, truncated = self._ends
        return self._rewards[envs].astype(np.float64), terminated[envs] | truncated[envs]

    def close(self) -> None:
        """As in EpisodeEnvs."""
        self._env.close()


class AleEnvs:
    """Vector envs of ale-py with one env each, as all envs of one step together.

    Args:
        game: the name of the game.
        num_envs: how many envs there are.
        num_threads: how many of them emulate at the same time.
        for_gpu: the observations are in pinned memory.
        options: keywords of ale_py.AtariVectorEnv.
    """

    def __init__(
        self, game: str, num_envs: int, num_threads: int, for_gpu: bool, **options: Any
    ) -> None:
        import ale_py  # which registers hundreds of ids with gymnasium

        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        name = find_game(game).name
        self._envs = [
            ale_py.AtariVectorEnv(name, 1, num_threads=1, **options) for _ in range(num_envs)
        ]
        self.num_envs, self._num_threads = num_envs, num_threads
        space: Any = self._envs[0].single_action_space
        self.num_actions = int(space.n)
        self.observations = torch.empty((num_envs, *SHAPE), dtype=torch.uint8, pin_memory=for_gpu)
        self._observations = self.observations.numpy()

    def reset(self, seed: int, count: int) -> None:
        """As in EpisodeEnvs."""
        with ThreadPoolExecutor(self._num_threads, "reset") as pool:
            begun = pool.map(lambda number: self._envs[number].reset(seed=seed + number),
                             range(count))  # fmt: skip
            for number, (observation, _) in enumerate(begun):
                self._observations[number] = observation

    def step(self, envs: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in EpisodeEnvs."""
        rewards, over = np.zeros(len(envs)), np.zeros(len(envs), dtype=bool)
        for place, results in enumerate(self._steps(envs, actions)):
            observation, reward, terminated, truncated, _ = results
            self._observations[envs[place]] = observation
            rewards[place] = reward[0]
            over[place] = terminated[0] or truncated[0]
        return rewards, over

    def _steps(self, numbers: np.ndarray, actions: np.ndarray) -> Iterator[tuple[Any, ...]]:
        """Takes a step in each env, with so many at work as may be; yields what each one gives."""
        ahead, envs = self._num_threads, [self._envs[number] for number in numbers]
        for number, env in enumerate(envs[:ahead]):
            env.send(actions[number : number + 1])
        for number, env in enumerate(envs):
            given = env.recv()
            if number + ahead < len(envs):
                envs[number + ahead].send(actions[number + ahead : number + ahead + 1])
            yield given

    def close(self) -> None:
        """As in EpisodeEnvs."""
        for env in self._envs:
            env.close()


def make_episode_envs(
    emulator: str, game: str, num_envs: int, num_threads: int, for_gpu: bool, *, sticky: float,
    max_frames: int, noops: int, full_action_space: bool, patches: Sequence[str],
) -> EpisodeEnvs:  # fmt: skip
    """Envs of one of EMULATORS; the other arguments are those of CuleEnvs and of Evaluator."""
    # ale-py has none, and refuses the keyword.
    more = {"patches": list(patches)} if patches else {}
    kind: type[CuleEnvs | AleEnvs] = CuleEnvs if emulator == EMULATORS[0] else AleEnvs
    return kind(
        game, num_envs, num_threads, for_gpu, noop_max=noops, reward_clipping=False,
        full_action_space=full_action_space, repeat_action_probability=sticky,
        max_num_frames_per_episode=max_frames, frameskip=FRAMESKIP,
        **more,
    )  # fmt: skip
