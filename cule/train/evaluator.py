"""Evaluates policies on ale-py, one episode in each of its envs."""

from __future__ import annotations

from collections.abc import Callable

import ale_py
import numpy as np
import torch

from cule.rom import find_game
from cule.train.emulator import FRAMESKIP
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
        self.env = ale_py.AtariVectorEnv(
            find_game(game).name, episodes, num_threads=num_threads, noop_max=noops,
            full_action_space=full_action_space, reward_clipping=False,
            repeat_action_probability=sticky, max_num_frames_per_episode=max_frames,
            frameskip=FRAMESKIP,
        )  # fmt: skip

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
        observations, _ = self.env.reset(seed=seed)
        scores, playing = np.zeros(self.episodes), np.ones(self.episodes, dtype=bool)
        while playing.any():
            if stop():
                return None
            log_probabilities = policy(torch.from_numpy(observations).to(self.device))
            actions = (
                log_probabilities.argmax(dim=1) if greedy else sample(log_probabilities, generator)
            )
            observations, rewards, terminated, truncated, _ = self.env.step(actions.cpu().numpy())
            scores += np.where(playing, rewards, 0)
            playing &= ~(terminated | truncated)
        return scores

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()
