"""The groups of a batch, the options of its steps, and the actions that it offers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cule import _core
from cule.facts import actions
from cule.rom import Game

AUTORESET_MODES = ("NextStep", "SameStep", "Disabled")
EPISODE_STARTS = ("ale", "baselines", "envpool", "fire")


@dataclass(frozen=True)
class Group:
    """Envs that play the same game in the same mode and difficulty."""

    game: Game
    mode: int
    difficulty: int


@dataclass(frozen=True)
class Options:
    """The options of a step; each field is AtariEnv's keyword of the same name.

    `pooled_frames` is of how many frames `maxpool` is the maximum.
    `own_seeds` is for envs whose states are elsewhere (cule/adapters/jax): each has a seed of its
    own, and its random numbers do not depend on its number.
    """

    frameskip: int = 4
    max_frames: int = 108_000
    noop_max: int = 30
    episode_start: int = 0
    maxpool: bool = True
    pooled_frames: int = 2
    episodic_life: bool = False
    life_loss_info: bool = False
    reward_clipping: bool = True
    fire_reset: bool = True
    autoreset: int = 0
    repeat_action_probability: float = 0.0
    action_space: str = "minimal"
    observation_height: int = 84
    observation_width: int = 84
    channels: int = 1
    stack: int = 4
    reset_pool_size: int = 30
    sound: bool = False
    objects: bool = False
    own_seeds: bool = False

    @property
    def least_noops(self) -> int:
        """The least number that is drawn for no-ops; the greatest is one below `noop_max`."""
        return int(EPISODE_STARTS[self.episode_start] == "baselines" and self.noop_max > 1)

    @property
    def of_starts(self) -> Options:
        """The options on which start states depend; all others have their defaults."""
        names = ["noop_max", "fire_reset", "action_space", "reset_pool_size", "objects"]
        # With "fire" a game starts as with "ale"; only a life starts in another way.
        if EPISODE_STARTS[self.episode_start] not in ("ale", "fire"):
            names += ["episode_start", "life_loss_info", "frameskip", "maxpool"]
        return Options(**{name: getattr(self, name) for name in names})


def action_numbers(game: Game, space: str) -> tuple[int, ...]:
    """The actions (0 to 17) that an env of the game offers, in the order of its action space.

    `space` is "minimal" (those that matter in the game), "full" (those that it allows) or "all"
    (all 18).
    """
    if space == "all":
        return tuple(range(_core.NUM_ACTIONS))
    return actions.action_set(game.facts["legal_actions" if space == "full" else "minimal_actions"])


def action_ids(group: Group, space: str) -> np.ndarray:
    """(18,) uint8: the actions of the group's action space, then 0xFF."""
    numbers = np.full(_core.NUM_ACTIONS, 0xFF, dtype=np.uint8)
    offered = action_numbers(group.game, space)
    numbers[: len(offered)] = offered
    return numbers
