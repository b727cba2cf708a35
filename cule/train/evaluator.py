"""Evaluates policies on ale-py, one episode in each of its envs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext

import ale_py
import numpy as np
import torch

from cule.device import usable_cpus
from cule.rom import find_game
from cule.train import annotate
from cule.train.emulator import FRAMESKIP, in_parts
from cule.train.models import sample

NOOPS = 30
# Episodes that are played side by side, by the kind of the policy's device. On a CPU: with more,
# more of them wait for the longest; with fewer, Python takes longer than the emulator. A GPU takes
# as long for one as for a hundred, and if several threads call it they wait for Python. The number
# decides which random numbers an episode has, and so must not depend on the number of cores.
GROUP = {"cpu": 8, "cuda": 128}
Policy = Callable[[torch.Tensor], torch.Tensor]


def groups_of(episodes: int, device: torch.device) -> int:
    """How many groups so many episodes are, if the policy is on this device."""
    return -(-episodes // GROUP[device.type])


class Evaluator:
    """Envs of ale-py on which policies are evaluated.

    They are in groups of at most GROUP, each a vector env with random numbers of its own. A thread
    plays a group to its end, then the next one; if there are fewer groups than threads, the others
    emulate. So no episode waits for those of other groups, and scores do not depend on the number
    of threads.

    Args:
        game: what to play.
        episodes: how many, each in an env of its own.
        device: where the policy is.
        sticky: probability that a frame repeats the last frame's action.
        max_frames: frames after which an episode is truncated.
        noops: `noop_max` of the envs: an episode starts with fewer no-ops than this; 0: with none.
        full_action_space: offer all 18 actions, as in the policy's training.
        num_threads: how many; 0: one for each core.
        share: (i, n): only the groups of the i-th of n parts.

    Raises:
        ValueError: there is no such game.
    """

    def __init__(
        self,
        game: str,
        episodes: int,
        device: torch.device,
        *,
        sticky: float,
        max_frames: int,
        noops: int = NOOPS,
        full_action_space: bool = False,
        num_threads: int = 0,
        share: tuple[int, int] = (0, 1),
    ):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.device = device
        name = find_game(game).name
        parts = in_parts(episodes, groups_of(episodes, device))
        number, shares = share
        self._parts = parts[in_parts(len(parts), shares)[number]]
        threads = num_threads or usable_cpus()
        each = max(1, threads // len(self._parts))
        self.envs = [
            ale_py.AtariVectorEnv(
                name, part.stop - part.start, num_threads=each, noop_max=noops,
                full_action_space=full_action_space, reward_clipping=False,
                repeat_action_probability=sticky, max_num_frames_per_episode=max_frames,
                frameskip=FRAMESKIP,
            )
            for part in self._parts
        ]  # fmt: skip
        # Each thread computes by itself: if torch had more for each, they would wait for cores.
        self._pool = ThreadPoolExecutor(
            min(threads, len(self._parts)), "evaluation", torch.set_num_threads, (1,)
        )

    def scores(
        self,
        policy: Policy,
        seed: int,
        *,
        greedy: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> np.ndarray | None:
        """Plays an episode in every env.

        Args:
            policy: maps (n, 4, 84, 84) uint8 to log-probabilities (n, num_actions). Several threads
                call it at the same time.
            seed: of the envs and of the actions, which have random generators of their own.
            greedy: take the most probable action.
            stop: called before each step of a group; True ends the evaluation.

        Returns:
            (episodes of the share,) float64, the scores, of unclipped rewards; None if it was
            stopped.
        """
        over = threading.Event()
        # A thread has to be told on which stream the weights were made.
        cuda = self.device.type == "cuda"
        stream = torch.cuda.current_stream(self.device) if cuda else None

        def play(env: ale_py.AtariVectorEnv, part: slice) -> np.ndarray | None:
            on_stream = nullcontext() if stream is None else torch.cuda.stream(stream)
            try:
                with torch.no_grad(), on_stream:
                    return self._play(
                        env, policy, seed + part.start, greedy, lambda: over.is_set() or stop()
                    )
            except BaseException:
                over.set()
                raise

        threads = torch.get_num_threads()
        try:
            playing = [
                self._pool.submit(play, *both) for both in zip(self.envs, self._parts, strict=True)
            ]
            try:
                found = [one.result() for one in playing]
            finally:  # after Ctrl-C, too, no other group begins, and the threads end at a step
                over.set()
                for one in playing:
                    one.cancel()
                wait(playing)
        finally:
            torch.set_num_threads(threads)
        played = [one for one in found if one is not None]
        return np.concatenate(played) if len(played) == len(found) else None

    @annotate.operation("evaluation")
    def _play(
        self, env: ale_py.AtariVectorEnv, policy: Policy, seed: int, greedy: bool,
        stop: Callable[[], bool],
    ) -> np.ndarray | None:  # fmt: skip
        """The scores of a group; None if it was stopped."""
        generator = torch.Generator(self.device).manual_seed(seed)
        observations, _ = env.reset(seed=seed)
        scores, playing = np.zeros(env.num_envs), np.arange(env.num_envs)
        # Of envs whose episode is over; their next one does not count.
        actions = np.zeros(env.num_envs, dtype=np.int64)
        on_gpu = self.device.type == "cuda"
        while playing.size:
            if stop():
                return None
            # On a GPU they are asked for, too: for a batch of another size cuDNN would look for its
            # fastest kernels again.
            asked = slice(None) if on_gpu else playing
            log_probabilities = policy(torch.from_numpy(observations[asked]).to(self.device))
            chosen = (
                log_probabilities.argmax(dim=1) if greedy else sample(log_probabilities, generator)
            )
            actions[asked] = chosen.cpu().numpy()
            observations, rewards, terminated, truncated, _ = env.step(actions)
            scores[playing] += rewards[playing]
            playing = playing[~(terminated | truncated)[playing]]
        return scores

    def close(self) -> None:
        """Frees the envs and ends the threads."""
        self._pool.shutdown()
        for env in self.envs:
            env.close()
