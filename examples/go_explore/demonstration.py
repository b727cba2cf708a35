"""Demonstrations: the actions of an episode from the start of a game, and what they score."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cule
from cule.console.options import action_numbers
from cule.disk.files import opened, replacing
from cule.errors import InvalidValue
from cule.rom import find_game
from cule.train.envs.emulator import FRAMESKIP
from cule.train.evaluate.episode_envs import make_episode_envs

MOST_FRAMES = 108_000
KIND = "cule demonstration"


def make_env(
    game: str, num_envs: int, device: torch.device, *, full_action_space: bool, num_threads: int,
    **more: Any,
) -> cule.AtariEnv:  # fmt: skip
    """Envs whose games begin as those of demonstrations: all alike, without no-ops.

    Args:
        game: the name of the game.
        num_envs: how many envs there are.
        device: where they are.
        full_action_space: whether they have all 18 actions.
        num_threads: CPU threads of the emulator.
        more: further keywords of AtariEnv.
    """
    return cule.AtariEnv(
        game, num_envs, device, noop_max=0, reset_pool_size=1, reward_clipping=False,
        frameskip=FRAMESKIP, full_action_space=full_action_space, num_threads=num_threads,
        output="torch_shared", progress=False, **more,
    )  # fmt: skip


@dataclass(frozen=True)
class Demonstration:
    """An episode, without sticky actions and without no-ops at its start.

    Attributes:
        game: the name of the game.
        full_action_space: whether actions are those of all 18, or of those that the game has.
        actions: the actions, four frames each.
        score: what they score, of rewards that are not clipped.
    """

    game: str
    full_action_space: bool
    actions: tuple[int, ...]
    score: float

    def save(self, path: Path) -> None:
        """Writes it as JSON.

        Raises:
            ValueError: the file cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(json.dumps({"kind": KIND, **asdict(self)}).encode())
        except OSError as problem:
            raise InvalidValue(
                f"expected a file that can be written, got {path}: {problem.strerror}"
            ) from problem

    @staticmethod
    def load(path: Path) -> Demonstration:
        """Reads one that `save` has written.

        Raises:
            ValueError: there is no such file, or it is no demonstration.
        """
        try:
            with opened(path) as file:
                found = json.loads(file.read())
        except (OSError, ValueError) as problem:
            raise InvalidValue(f"expected a demonstration, got {path}: {problem}") from problem
        fits = isinstance(found, dict) and found.pop("kind", None) == KIND
        names = {"game": str, "full_action_space": bool, "actions": list, "score": (int, float)}
        fits = fits and found.keys() == names.keys()
        if not fits or not all(isinstance(found[name], kind) for name, kind in names.items()):
            raise InvalidValue(f"expected a demonstration, got {path} with other content")
        actions = found["actions"]
        space = "all" if found["full_action_space"] else "minimal"
        count = len(action_numbers(find_game(found["game"]), space))
        most = MOST_FRAMES // FRAMESKIP
        if len(actions) > most or not all(
            isinstance(one, int) and 0 <= one < count for one in actions
        ):
            raise InvalidValue(
                f"expected at most {most:,} actions from 0 to {count - 1} in {path}, got others"
            )
        return Demonstration(**found | {"actions": tuple(actions)})

    def replayed(self, emulator: str) -> float:
        """The score of its actions when "cule" or "ale-py" plays them from the start."""
        with closing(make_episode_envs(
            emulator, self.game, 1, 1, False, sticky=0.0, max_frames=MOST_FRAMES, noops=0,
            full_action_space=self.full_action_space, patches=(),
        )) as envs:  # fmt: skip
            envs.reset(0, 1)
            score = 0.0
            for action in self.actions:
                rewards, over = envs.step(np.zeros(1, np.int64), np.array([action]))
                score += float(rewards[0])
                if over[0]:
                    break
        return score
