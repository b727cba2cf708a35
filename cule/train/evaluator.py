"""Evaluates policies on ale-py, one episode in each of its envs."""

from __future__ import annotations

from collections.abc import Callable

import ale_py
import numpy as np
import torch

from cule.device import usable_cpus
from cule.rom import find_game
from cule.train.emulator import FRAMESKIP, envs_in_parts
from cule.train.models import sample

NOOPS = 30
Policy = Callable[[torch.Tensor], torch.Tensor]


class Evaluator:
    """Envs of ale-py on which policies are evaluated.

    Args:
        game: what to play.
        episodes: how many, each in an env of its own.
        device: where the policy is.
        sticky: probability that a frame repeats the last frame's action.
        max_frames: frames after which an episode is truncated.
        noops: `noop_max` of the envs: an episode starts with fewer no-ops than this; 0: with none.
        full_action_space: offer all 18 actions, as in the policy's training.
        num_threads: ale-py's threads; 0: one for each core.

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
    ):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.device, self.episodes = device, episodes
        name, count = find_game(game).name, min(episodes, num_threads or usable_cpus())
        # A vector env steps all of its envs, also those whose episode is over. So each thread has
        # one of its own, which rests when all its episodes are over.
        self._parts = envs_in_parts(episodes, count)
        self.envs = [
            ale_py.AtariVectorEnv(
                name, part.stop - part.start, num_threads=1, noop_max=noops,
                full_action_space=full_action_space, reward_clipping=False,
                repeat_action_probability=sticky, max_num_frames_per_episode=max_frames,
                frameskip=FRAMESKIP,
            )
            for part in self._parts
        ]  # fmt: skip

    @torch.no_grad()
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
            policy: maps (n, 4, 84, 84) uint8 to log-probabilities (n, num_actions).
            seed: of the envs and of the actions, which have a random generator of their own.
            greedy: take the most probable action.
            stop: called before each step; True ends the evaluation.

        Returns:
            (episodes,) float64, the scores, of unclipped rewards; None if it was stopped.
        """
        generator = torch.Generator(self.device).manual_seed(seed)
        both = list(zip(self.envs, self._parts, strict=True))
        first = [env.reset(seed=seed + part.start)[0] for env, part in both]
        observations = torch.from_numpy(np.concatenate(first)).to(self.device)
        scores, playing = np.zeros(self.episodes), np.ones(self.episodes, dtype=bool)
        while both:
            if stop():
                return None
            log_probabilities = policy(observations)
            chosen = (
                log_probabilities.argmax(dim=1) if greedy else sample(log_probabilities, generator)
            )
            actions = chosen.cpu().numpy()
            for env, part in both:
                env.send(actions[part])
            for env, part in both:
                following, rewards, terminated, truncated, _ = env.recv()
                observations[part] = torch.from_numpy(following).to(self.device)
                scores[part] += np.where(playing[part], rewards, 0)
                playing[part] &= ~(terminated | truncated)
            both = [(env, part) for env, part in both if playing[part].any()]
        return scores

    def close(self) -> None:
        """Frees the envs."""
        for env in self.envs:
            env.close()
