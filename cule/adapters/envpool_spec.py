"""EnvPool's specs of its Atari envs: their keywords, arrays and spaces."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete

from cule import arguments
from cule.console import action_numbers
from cule.env.lineup import choose_action_space, games_of_envs, make_groups
from cule.errors import InvalidType, InvalidValue, shown

RAM_BYTES = 128


class Config(NamedTuple):
    """EnvPool's keywords with its defaults; and AtariEnv's `device` and `reset_pool_size`."""

    num_envs: int = 1
    batch_size: int = 0
    num_threads: int = 0
    max_num_players: int = 1
    thread_affinity_offset: int = -1
    seed: int = 42
    env_seed: Sequence[int] = ()
    gym_reset_return_info: bool = True
    max_episode_steps: int = 27_000
    stack_num: int = 4
    frame_skip: int = 4
    noop_max: int = 30
    zero_discount_on_life_loss: bool = False
    episodic_life: bool = False
    reward_clip: bool = False
    use_fire_reset: bool = True
    img_height: int = 84
    img_width: int = 84
    task: str = "pong"
    mode: int = -1
    difficulty: int = -1
    full_action_space: bool = False
    repeat_action_probability: float = 0.0
    use_inter_area_resize: bool = True
    gray_scale: bool = True
    device: str | torch.device | None = None
    reset_pool_size: int = 30

    def atari_options(self) -> dict[str, Any]:
        """AtariEnv's keywords for the same envs.

        AtariEnv's `episodic_life` starts a new game after each life, as ale-py's does. EnvPool's
        goes on with the next life, which is AtariEnv's `life_loss_info` with its `episode_start`.
        """
        device = self.device
        if device is None and 0 < self.batch_size < self.num_envs:
            device = "cpu"
        return {
            "num_threads": self.num_threads,
            "thread_affinity_offset": self.thread_affinity_offset,
            "max_num_frames_per_episode": self.max_episode_steps * self.frame_skip,
            "stack_num": self.stack_num,
            "frameskip": self.frame_skip,
            "noop_max": self.noop_max,
            "life_loss_info": self.episodic_life,
            "episode_start": "envpool",
            "reward_clipping": self.reward_clip,
            "use_fire_reset": self.use_fire_reset,
            "img_height": self.img_height,
            "img_width": self.img_width,
            "mode": or_none(self.mode),
            "difficulty": or_none(self.difficulty),
            "full_action_space": self.full_action_space,
            "repeat_action_probability": self.repeat_action_probability,
            "grayscale": self.gray_scale,
            "device": device,
            "reset_pool_size": self.reset_pool_size,
        }


def or_none(value: int) -> int | None:
    """A mode or difficulty as AtariEnv has it: EnvPool's -1 is the game's default."""
    return None if value == -1 else value


class ArraySpec(NamedTuple):
    """One of EnvPool's arrays, without the axis of the envs; -1 is the axis of the one player."""

    dtype: type
    shape: list[int]
    minimum: Any
    maximum: Any
    is_discrete: bool = False


def _whole(dtype: type, shape: list[int], least: Any = None, most: Any = None) -> ArraySpec:
    limits: Any = np.finfo(dtype) if np.issubdtype(dtype, np.floating) else np.iinfo(dtype)
    return ArraySpec(
        dtype, shape, limits.min if least is None else least, limits.max if most is None else most
    )


class EnvSpec:
    """The keywords, arrays and spaces of a pool of envs, `env.spec`. Made by `make_spec`.

    Attributes:
        config: a `Config`.
        state_array_spec: what a step returns: an `ArraySpec` by each of EnvPool's names.
        action_array_spec: what a step takes, likewise.
        observation_space: of one env: (stack_num, img_height, img_width) uint8; in color there are
            three planes for each frame.
        action_space: of one env.
        reward_threshold: None.

    Raises:
        TypeError, ValueError: as `make_spec`'s.
    """

    gen_config = Config
    reward_threshold = None

    def __init__(self, config: Config):
        _check(config)
        self.config = config
        (game,) = games_of_envs(config.task, 1)
        groups, _ = make_groups([game], [or_none(config.mode)], [or_none(config.difficulty)])
        space = choose_action_space(groups, config.full_action_space)
        count = len(action_numbers(game, space))
        planes = config.stack_num * (1 if config.gray_scale else 3)
        shape = [planes, config.img_height, config.img_width]
        self.observation_space = self.gymnasium_observation_space = Box(0, 255, shape, np.uint8)
        self.action_space = self.gymnasium_action_space = Discrete(count)
        self.state_array_spec = {
            "info:env_id": _whole(np.int32, []),
            "info:players.env_id": _whole(np.int32, [-1]),
            "elapsed_step": _whole(np.int32, []),
            "done": ArraySpec(np.bool_, [], False, True),
            "reward": _whole(np.float32, [-1]),
            "discount": _whole(np.float32, [-1], 0.0, 1.0),
            "step_type": _whole(np.int32, []),
            "trunc": ArraySpec(np.bool_, [], False, True),
            "obs": _whole(np.uint8, shape),
            "info:lives": _whole(np.int32, [-1]),
            "info:reward": _whole(np.float32, [-1]),
            "info:terminated": _whole(np.int32, [-1], 0, 1),
            "info:ram": _whole(np.uint8, [RAM_BYTES]),
        }
        self.action_array_spec = {
            "env_id": _whole(np.int32, []),
            "players.env_id": _whole(np.int32, [-1]),
            "action": _whole(np.int32, [-1], 0, count - 1),
        }

    def __repr__(self) -> str:
        return repr(self.config).replace("Config", "AtariEnvSpec", 1)


def make_spec(task_id: str, **options: Any) -> EnvSpec:
    """The spec of the envs that `make` makes with the same keywords.

    Raises:
        TypeError, ValueError: a keyword is unknown, or cule does not have its value.
    """
    unknown = [name for name in options if name not in Config._fields or name == "task"]
    if unknown:
        close = difflib.get_close_matches(unknown[0], Config._fields, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InvalidType(f"expected keywords of EnvPool's Atari envs, got {unknown[0]!r}{hint}")
    seed = options.get("seed")
    if seed is not None and np.ndim(seed) > 0:
        if "env_seed" in options:
            raise InvalidValue(
                "expected either seeds for all envs as seed or as env_seed, got both"
            )
        options |= {"seed": 0, "env_seed": arguments.array("seed", seed).tolist()}
    (game,) = games_of_envs(task_id, 1)
    spec = EnvSpec(Config(**options, task=game.name))
    spec.config = spec.config._replace(batch_size=spec.config.batch_size or spec.config.num_envs)
    return spec


def _check(config: Config) -> None:
    """Refuses what AtariEnv does not check, or cule does not have.

    Raises:
        TypeError, ValueError: see `make_spec`.
    """
    for name in (
        "num_envs",
        "max_episode_steps",
        "frame_skip",
        "stack_num",
        "img_height",
        "img_width",
    ):
        arguments.integer(name, getattr(config, name))
    arguments.integer("batch_size", config.batch_size, 0, config.num_envs)
    for name in ("mode", "difficulty"):
        arguments.integer(name, getattr(config, name), -1)
    for name, default in Config._field_defaults.items():
        if isinstance(default, bool):
            arguments.flag(name, getattr(config, name))
    if config.max_num_players != 1:
        raise InvalidValue(f"expected max_num_players to be 1, got {shown(config.max_num_players)}")
    if len(config.env_seed):
        arguments.seeds(config.env_seed, None, config.num_envs)
    else:
        arguments.integer("seed", config.seed, 0, arguments.MAX_SEED - config.num_envs + 1)
