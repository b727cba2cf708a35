"""Evaluates policies on cule's envs or on ale-py's, one episode in each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch

from cule.devices.device import usable_cpus
from cule.train.envs.emulator import in_parts
from cule.train.evaluate.acting import Acting
from cule.train.evaluate.episode_envs import EpisodeEnvs, make_episode_envs
from cule.train.evaluate.policy import Policy
from cule.train.plan import annotate

NOOPS = 30
# Episodes that are played side by side, by the kind of the policy's device. On a CPU: with more,
# more of them wait for the longest; with fewer, Python takes longer than the emulator. A GPU takes
# as long for one as for a hundred, and if many threads call it they wait for Python; with two, one
# group emulates while the other waits for the GPU. The number decides which random numbers an
# episode has, and so must not depend on the number of cores.
GROUP = {"cpu": 8, "cuda": 64}
MAX_EPISODES = 1_000_000


def groups_of(episodes: int, device: torch.device) -> int:
    """How many groups so many episodes are, if the policy is on this device."""
    return -(-episodes // GROUP[device.type])


class Evaluator:
    """Envs on which policies are evaluated.

    They are in groups of at most GROUP, each with random numbers of its own. A thread plays a group
    to its end, then the next one, with the same envs; if there are fewer groups than threads,
    several of a group's envs emulate at the same time. So no episode waits for those of other
    groups, and scores do not depend on the number of threads. An env whose episode is over steps no
    more.

    Args:
        game: the name of the game.
        episodes: how many episodes are played.
        device: the device of the policy.
        emulator: whose envs play, "cule" or "ale-py".
        sticky: the probability that a frame repeats the last frame's action.
        max_frames: frames after which an episode is truncated.
        noops: `noop_max` of the envs: an episode starts with fewer no-ops than this; 0: with none.
        full_action_space: offer all 18 actions, as in the policy's training.
        num_threads: how many threads play; 0: one for each core.
        share: (i, n): only the groups of the i-th of n shares.
        graphs: on a GPU, whether a step of the policy may be a CUDA graph.
        patches: modifications of the game, by name, on cule's envs.

    Attributes:
        envs: the envs of each thread.

    Raises:
        ValueError: there is no such game.
    """

    def __init__(
        self,
        game: str,
        episodes: int,
        device: torch.device,
        *,
        emulator: str,
        sticky: float,
        max_frames: int,
        noops: int = NOOPS,
        full_action_space: bool = False,
        num_threads: int = 0,
        share: tuple[int, int] = (0, 1),
        graphs: bool = False,
        patches: Sequence[str] = (),
    ):
        self.device, self._graphs = device, graphs
        parts = in_parts(episodes, groups_of(episodes, device))
        number, shares = share
        self._parts = parts[in_parts(len(parts), shares)[number]]
        threads = num_threads or usable_cpus()
        emulating = max(1, threads // len(self._parts))  # of a group's envs
        playing = min(threads, len(self._parts))
        largest = max(part.stop - part.start for part in self._parts)
        self.envs = [
            make_episode_envs(
                emulator, game, largest, emulating, device.type == "cuda", sticky=sticky,
                max_frames=max_frames, noops=noops, full_action_space=full_action_space,
                patches=patches,
            )
            for _ in range(playing)
        ]  # fmt: skip
        # Each thread computes by itself: if torch had more for each, they would wait for cores.
        self._pool = ThreadPoolExecutor(playing, "evaluation", torch.set_num_threads, (1,))

    def scores(
        self,
        policy: Policy,
        seed: int,
        *,
        greedy: bool = False,
        stop: Callable[[], bool] = lambda: False,
        on_ended: Callable[[int], object] = lambda ended: None,
        known: Mapping[int, np.ndarray] | None = None,
        on_group: Callable[[int, np.ndarray], object] = lambda first, scores: None,
    ) -> np.ndarray | None:
        """Plays all episodes.

        Args:
            policy: the policy, which several threads call at the same time.
            seed: of the envs and of the actions, which have random generators of their own.
            greedy: take the most probable action.
            stop: called before each step of a group; True ends the evaluation.
            on_ended: called with how many episodes have just ended, by one thread at a time.
            known: the scores of groups that were played before, and are not played again, by the
                number of their first episode.
            on_group: called with a group's first episode and its scores when all of it has ended,
                by one thread at a time.

        Returns:
            (episodes of the share,) float64, the scores, of unclipped rewards; None if it was
            stopped.
        """
        over, lock = threading.Event(), threading.Lock()
        first, known = self._parts[0].start, known or {}
        scores = np.zeros(self._parts[-1].stop - first)
        for part in (part for part in self._parts if part.start in known):
            scores[part.start - first : part.stop - first] = known[part.start]
        parts = iter([part for part in self._parts if part.start not in known])
        # Each thread has a current stream of its own; the weights are on this thread's.
        stream = torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None

        def tell(listener: Callable[..., object], *what: Any) -> None:
            with lock:
                listener(*what)

        def play(envs: EpisodeEnvs) -> None:
            on_stream = nullcontext() if stream is None else torch.cuda.stream(stream)
            try:
                with torch.no_grad(), on_stream:
                    while (part := next(parts, None)) is not None:
                        played = self._play(
                            envs, part.stop - part.start, policy, seed + part.start, greedy,
                            lambda: over.is_set() or stop(), partial(tell, on_ended),
                        )  # fmt: skip
                        if played is None:
                            over.set()
                            return
                        scores[part.start - first : part.stop - first] = played
                        tell(on_group, part.start, played)
            except BaseException:
                over.set()
                raise

        return scores if self._in_threads(play, over) else None

    def _in_threads(self, play: Callable[[EpisodeEnvs], None], over: threading.Event) -> bool:
        """Lets each thread play with its envs; returns whether none of them has set `over`."""
        threads = torch.get_num_threads()
        try:
            playing = [self._pool.submit(play, envs) for envs in self.envs]
            try:
                for one in playing:
                    one.result()
                return not over.is_set()
            finally:  # after Ctrl-C, too, the threads end at a step
                over.set()
                wait(playing)
        finally:
            torch.set_num_threads(threads)

    @annotate.operation("evaluation")
    def _play(
        self, envs: EpisodeEnvs, count: int, policy: Policy, seed: int, greedy: bool,
        stop: Callable[[], bool], ended: Callable[[int], None],
    ) -> np.ndarray | None:  # fmt: skip
        """The scores of a group of `count` episodes; None if it was stopped."""
        act = Acting(
            policy, envs.observations[:count], self.device, seed=seed, greedy=greedy,
            graphs=self._graphs,
        )  # fmt: skip
        envs.reset(seed, count)
        scores, playing = np.zeros(count), np.arange(count)
        with closing(act):
            while playing.size:
                if stop():
                    return None
                rewards, over = envs.step(playing, act(playing))
                scores[playing] += rewards
                if over.any():
                    ended(int(over.sum()))
                playing = playing[~over]
        return scores

    def close(self) -> None:
        """Frees the envs and ends the threads."""
        self._pool.shutdown()
        for envs in self.envs:
            envs.close()
