"""Errors for keywords that a constructor does not take: unknown ones, and those it sets itself."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

from cule.errors import InvalidType, shown

P = ParamSpec("P")

# Names for the same thing in other libraries: EnvPool, ale-py, gymnasium's AtariPreprocessing,
# stable-baselines3, OpenAI baselines, CuLE 0.1.
OTHER_NAMES = {
    "action_repeat_probability": "repeat_action_probability",
    "clip_reward": "reward_clipping",
    "clip_rewards": "reward_clipping",
    "color_mode": "grayscale",
    "env_id": "game",
    "env_name": "game",
    "episode_life": "life_loss_info",
    "frame_skip": "frameskip",
    "frame_stack": "stack_num",
    "gray_scale": "grayscale",
    "grayscale_obs": "grayscale",
    "image_size": "img_height and img_width",
    "max_episode_length": "max_num_frames_per_episode",
    "max_episode_steps": "max_num_frames_per_episode, which counts frames: steps times frameskip",
    "max_noop_steps": "noop_max",
    "n_envs": "num_envs",
    "num_stack": "stack_num",
    "obs_size": "img_height and img_width",
    "repeat_prob": "repeat_action_probability",
    "reward_clip": "reward_clipping",
    "rom": "game",
    "screen_size": "img_height and img_width",
    "stack_size": "stack_num",
    "sticky_actions": "repeat_action_probability",
    "task_id": "game",
    "terminal_on_life_loss": "life_loss_info",
}


def meant_by(name: str, keywords: Iterable[str]) -> str | None:
    """The keyword that `name` seems to mean: by another library's name, or the most similar one."""
    if name in OTHER_NAMES:
        return OTHER_NAMES[name]
    closest = difflib.get_close_matches(name.lower(), list(keywords), n=1, cutoff=0.6)
    return closest[0] if closest else None


def names_what_was_meant(constructor: Callable[P, None]) -> Callable[P, None]:
    """Decorates a constructor: its error for an unknown keyword names the one that was meant.

    Raises:
        InvalidType: there is no such keyword.
    """
    keywords = [name for name in inspect.signature(constructor).parameters if name != "self"]
    owner = constructor.__qualname__.partition(".")[0]

    @functools.wraps(constructor)
    def checked(*positional: P.args, **given: P.kwargs) -> None:
        for name in given:
            if name not in keywords:
                meant = meant_by(name, keywords)
                hint = f"; did you mean {meant}?" if meant else f": help(cule.{owner}) lists them"
                raise InvalidType(f"expected a keyword of {owner}, got {name!r}{hint}")
        constructor(*positional, **given)

    return checked


def refuse(owner: str, options: dict[str, Any], reserved: dict[str, str]) -> None:
    """Checks that `options` has none of the keywords that `owner` sets itself.

    Args:
        owner: the class or function whose keywords these are, for the message.
        options: AtariEnv's keywords, as the user gave them.
        reserved: the keywords that are refused, each with the reason.

    Raises:
        TypeError: one of them is there.
    """
    for name, reason in reserved.items():
        if name in options:
            raise InvalidType(
                f"expected no {name} for {owner}, as {reason}, got {shown(options[name])}"
            )
