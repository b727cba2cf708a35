"""The rewards that an algorithm learns from: clipped, or less so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import torch

from cule.errors import InvalidValue

RewardName = Literal["clipped", "root"]
# Turns a step's rewards and infos into the rewards that are learned from.
LearnedRewards = Callable[[torch.Tensor, Mapping[str, torch.Tensor]], torch.Tensor]
# The share of a reward that `signed_root` adds, so that it grows as fast as the reward in the end.
LINEAR = 1e-3


def signed_root(rewards: torch.Tensor) -> torch.Tensor:
    """Squashes rewards so that 10 counts as 2.3, 100 as 9.1 and 1,000 as 31.6.

    sign(r) (sqrt(|r| + 1) - 1) + r / 1000, the function h of Pohlen et al. (2018), "Observe and
    look further: achieving consistent performance on Atari", section 3.2. There it is applied to
    values, here to rewards.

    Args:
        rewards: (n,).

    Returns:
        (n,) float32.
    """
    rewards = rewards.float()
    return rewards.sign() * ((rewards.abs() + 1).sqrt() - 1) + LINEAR * rewards


def learned_rewards(kind: RewardName) -> LearnedRewards:
    """The function from a step's rewards and infos to the rewards that are learned from.

    Args:
        kind: clipped: those of the step, which of a game's are -1, 0 or 1. root: those of the infos
            (`raw_reward`, not clipped), or of the step if there are none, squashed by signed_root.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in get_args(RewardName):
        names = ", ".join(get_args(RewardName))
        raise InvalidValue(f"expected rewards to be one of {names}, got {kind!r}")
    if kind == "clipped":
        return lambda rewards, infos: rewards
    return lambda rewards, infos: signed_root(infos.get("raw_reward", rewards))
