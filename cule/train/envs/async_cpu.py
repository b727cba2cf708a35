"""Envs on the CPU that play in parts, while a learner acts for other parts and learns.

The parts are in flight on one pool of threads, that of their AtariEnv. With a learner on a GPU
results and actions are in pinned memory, so that a CUDA graph holds their copies, too: for each
part's step the host waits for the threads, starts one graph, and waits for the actions.
"""

from __future__ import annotations

from typing import Any

import torch

import cule
from cule.env.flights import Flights
from cule.train.envs.emulator import in_parts
from cule.train.envs.episodes import Episodes
from cule.train.nn.rewards import LearnedRewards

# The entries of a step's infos that training reads.
INFOS = ("raw_reward", "new_game")


class AsyncCpuEnvs:
    """A collector's envs, stepped part by part: an AsyncOperation of plan/program.py.

    Args:
        env: the envs, on the CPU.
        episodes: follows their episodes, on `device`.
        device: the device of the learner.
        groups: how many parts there are.
        learned: turns rewards and infos into the rewards that are learned from.

    Attributes:
        parts: the envs of each part, as equal in number as possible.
    """

    def __init__(
        self, env: cule.AtariEnv, episodes: Episodes, device: torch.device, groups: int,
        learned: LearnedRewards,
    ):  # fmt: skip
        self.episodes, self.device, self.flights = episodes, device, Flights(env)
        self._learned = learned
        self.parts = in_parts(env.num_envs, groups)
        self._numbers = [0] * groups
        on_gpu = device.type == "cuda"
        if on_gpu:
            self.flights.pin_results()
            # With a number torch does not look for it, which takes the host 15 us.
            self._gpu = torch.cuda.current_device() if device.index is None else device.index
        # The results of the envs' steps in the host's memory, and their copies on the device.
        self._host_results = [self._results_of(envs) for envs in self.parts]
        self._here = [
            {name: tensor.to(device) for name, tensor in results.items()}
            for results in self._host_results
        ]
        sizes = [envs.stop - envs.start for envs in self.parts]
        # Of several players each has an action, and a reward besides.
        each = self._here[0]["rewards"].shape[1:]
        self._actions = [torch.zeros(n, *each, dtype=torch.int64, pin_memory=on_gpu) for n in sizes]
        self._together = [*map(self.flights.together, self.parts, self._actions)]
        # On a GPU: since when a part's actions are there. A host that waits leaves its CPU to envs.
        self._copied = [torch.cuda.Event(blocking=True) for _ in sizes if on_gpu]

    def _results_of(self, envs: slice) -> dict[str, torch.Tensor]:
        """Views of the results of a step of some envs, by name."""
        frames, rewards, terminated, truncated, infos = self.flights.shared_results(envs)
        some = {"frames": frames, "rewards": rewards, "terminated": terminated}
        return some | {"truncated": truncated} | {name: infos[name] for name in INFOS}

    def stage(self, part: int, actions: torch.Tensor, *_: Any) -> None:
        """See AsyncOperation; the actions are those of the part's envs."""
        self._actions[part].copy_(actions, non_blocking=True)

    def staged(self, part: int) -> None:
        """See AsyncOperation."""
        if self._copied:
            self._copied[part].record(torch.cuda.current_stream(self._gpu))

    def send(self, part: int) -> None:
        """See AsyncOperation."""
        if self._copied:
            self._copied[part].synchronize()
        self._numbers[part] = self._together[part].step()

    def is_done(self, part: int) -> bool:
        """See AsyncOperation."""
        return self.flights.is_done(self._numbers[part])

    def recv(self, part: int) -> None:
        """See AsyncOperation."""
        self.flights.wait(self._numbers[part])

    def results(self, part: int) -> tuple[torch.Tensor, ...]:
        """The results of Collector.step for the part's envs."""
        for name, tensor in self._host_results[part].items():
            self._here[part][name].copy_(tensor, non_blocking=True)
        here = self._here[part]
        infos = {name: here[name] for name in INFOS}
        started = self.episodes.follow(
            here["rewards"], here["terminated"], here["truncated"], infos, self.parts[part]
        )
        return here["frames"], self._learned(here["rewards"], infos), here["terminated"], started
