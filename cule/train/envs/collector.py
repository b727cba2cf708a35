"""The envs of a process, as the plan sees them: steps in, observations and rewards out."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

import cule
from cule.engine import fewest_multiprocessors
from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.devices import multiprocessors_of
from cule.train.envs.async_cpu import INFOS, AsyncCpuEnvs
from cule.train.envs.emulator import STACK, make_env
from cule.train.envs.episodes import Episodes
from cule.train.envs.own_envs import check_reset, check_step, num_actions_in, num_players_of
from cule.train.learning import Learning
from cule.train.nn.rewards import RewardName, learned_rewards

# Steps of each env after which it is first looked what code they execute. It is looked again each
# time after so many times as many steps, which takes half a second of a core: often enough for an
# agent that finds new waves late, and seldom in a long training.
LOOK_AT, LOOK_AGAIN = 500, 1.2


def _reserved(
    device: torch.device, asked: int, num_envs: int, *, beside: bool, alone: bool, sharing: int
) -> int | None:
    """How many multiprocessors are reserved for emulation at first; None: none is.

    None are reserved where nothing learns beside playing, for more envs than half of this
    training's part of the GPU can emulate, and where nothing learns on the multiprocessors that
    act.
    """
    if device.type != "cuda":
        return None
    if asked or not beside or alone:
        return asked or None
    half = multiprocessors_of(device, sharing) // 2
    return half if fewest_multiprocessors(num_envs) <= half else None


def make_envs(
    algorithm: Algorithm[Any],
    learning: Learning,
    num_envs: int,
    device: torch.device,
    *,
    alone: bool = False,
    sharing: int = 1,
) -> Any:
    """Makes the envs of a process: the algorithm's own, or those of its settings.

    Args:
        algorithm: the algorithm.
        learning: when and from what it learns.
        num_envs: how many envs this process plays.
        device: the device of the observations.
        alone: nothing learns on the multiprocessors that act, whatever the lag.
        sharing: among how many trainings the multiprocessors that CUDA counts are divided.

    Raises:
        ValueError: there is no such game or emulator, or a setting does not fit it or the envs.
    """
    args = algorithm.args
    _check_settings(args, device, brings_envs=algorithm.context.envs is not None)
    options = {
        "life_loss_ends": args.life_loss_ends,
        "repeat_action_probability": args.sticky,
        "full_action_space": args.full_action_space,
        "max_frames": args.max_episode_frames,
        "num_threads": args.num_threads,
    }
    own = algorithm.context.envs
    if own is not None:
        return own
    env_device = torch.device(args.env_device or device)
    multiprocessors = _reserved(
        env_device, args.multiprocessors, num_envs, beside=learning.beside, alone=alone,
        sharing=sharing,
    )  # fmt: skip
    return make_env(
        args.emulator, args.game, num_envs, device, multiprocessors=multiprocessors,
        env_device=env_device, **options,
    )  # fmt: skip


def _check_settings(args: Any, device: torch.device, *, brings_envs: bool) -> None:
    """Checks that settings for cule's envs are not asked of others.

    Raises:
        ValueError: one would have no effect.
    """
    if brings_envs and args.env_device:
        raise InvalidValue(
            f"expected no env_device for envs that an algorithm brings, got {args.env_device!r}"
        )
    on_gpu = torch.device(args.env_device or device).type == "cuda"
    if args.multiprocessors and (brings_envs or args.emulator != "cule" or not on_gpu):
        raise InvalidValue(
            f"expected multiprocessors only with cule's envs on a GPU, got {args.multiprocessors}"
        )


class Collector:
    """The envs of a process with their episodes and scores.

    Single frames of a game, (num_envs, 1, ...) uint8, are stored once and stacked by four when they
    are read. Other observations are stored as they are.

    Args:
        env: a vector env with AtariEnv's reset and step, in NEXT_STEP mode.
        device: the device of the observations.
        groups: groups of envs on the CPU that are in flight side by side; 1: all envs step at once.
        rewards: which rewards are learned from, see nn/rewards.py.
        seed: the seed of the first env.
        first_env: the number of the first env, over all processes.

    Attributes:
        num_players: how many players an env has, each with actions and rewards; what is played and
            returned for each is (num_envs, num_players), and (num_envs,) for one.
        first: the first observations of all envs.
        async_envs: steps the groups of envs; None: all envs step at once.
        captured: whether a CUDA graph may hold a step.
        first_step: how many steps of the training came before those of the program.

    Raises:
        ValueError: there are groups, but the envs are not an AtariEnv on the CPU; or `rewards` is
            unknown.
    """

    def __init__(
        self,
        env: Any,
        device: torch.device,
        groups: int = 1,
        rewards: RewardName = "clipped",
        *,
        seed: int = 0,
        first_env: int = 0,
    ):
        self.env, self.device, self.num_envs = env, device, int(env.num_envs)
        self.num_players = num_players_of(env)
        self.episodes = Episodes(self.num_envs, device)
        self._learned = learned_rewards(rewards)
        on_cpu = isinstance(env, cule.AtariEnv) and env.device.type == "cpu"
        if groups > 1 and not on_cpu:
            raise InvalidValue(
                "expected env_groups to be 1, unless the envs are an AtariEnv on the CPU "
                f"(env_device), got {groups}"
            )
        self.async_envs: AsyncCpuEnvs | None = None
        if on_cpu and (groups > 1 or device.type != "cpu"):
            self.async_envs = AsyncCpuEnvs(env, self.episodes, device, groups, self._learned)
        self.captured = isinstance(env, cule.AtariEnv) and self.async_envs is None
        self.first_env, self.first_step = first_env, 0
        self._compiled: dict[nn.Module, Any] = {}
        self._look_at = LOOK_AT
        self.first = self.reset(seed)

    @property
    def bytes(self) -> int:
        """Bytes that an AtariEnv takes on a GPU; of other envs they are not known: 0."""
        on_gpu = isinstance(self.env, cule.AtariEnv) and self.env.device.type == "cuda"
        return self.env.engine.memory.bytes if on_gpu else 0

    @property
    def num_actions(self) -> int:
        """Actions of an env; where actions are vectors, how many numbers one has."""
        return num_actions_in(self.env.single_action_space, self.num_players)

    def reset(self, seed: int) -> torch.Tensor:
        """Resets all envs; returns the first observations."""
        frames = check_reset(self.env.reset(seed=seed), self.num_envs)
        self._env_device = frames.device
        self.episodes.begin()
        return frames.to(self.device)

    @property
    def stack(self) -> int:
        """Frames that an observation stacks."""
        shape = self.first.shape
        single = self.first.dtype == torch.uint8 and len(shape) > 3 and shape[1] == 1
        return STACK if single and math.prod(shape[2:]) % 8 == 0 else 1

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of the observations that are stored of a step: (num_envs, ...)."""
        shape = tuple(self.first.shape)
        return (shape[0], *shape[2:]) if self.stack > 1 else shape

    @property
    def observation_dtype(self) -> torch.dtype:
        """The dtype of observations."""
        return self.first.dtype

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Plays one step in every env.

        Returns:
            Observations, rewards to learn from, terminated, and started: whether the step reset the
            env.
        """
        stepped = self.env.step(actions.to(self._env_device))
        if not isinstance(self.env, cule.AtariEnv):
            check_step(stepped, self.first, self.num_players)
        *results, infos = stepped
        if self._env_device != self.device:
            results = [result.to(self.device) for result in results]
            infos = {name: infos[name].to(self.device) for name in INFOS if name in infos}
        frames, rewards, terminated, truncated = results
        started = self.episodes.follow(rewards, terminated, truncated, infos)
        return frames, self._learned(rewards, infos), terminated, started

    def wait_until_translated(self, timeout: float | None = None) -> None:
        """If the game is being compiled for a GPU, waits for it, for `timeout` seconds at most."""
        if isinstance(self.env, cule.AtariEnv):
            self.env.wait_until_translated(timeout)

    def translate_again(self, steps: int) -> bool:
        """Loads what was compiled for a GPU, and compiles again if envs execute other code.

        See AtariEnv.translate_again.

        Args:
            steps: steps of each env so far, which decide whether it is time to look.

        Returns:
            Whether CUDA graphs have to be captured again.
        """
        if not isinstance(self.env, cule.AtariEnv):
            return False
        look = steps >= self._look_at
        if look:
            self._look_at = int(LOOK_AGAIN * steps)
        return self.env.translate_again(look)

    def compiled(self, net: nn.Module) -> Any:
        """The network, compiled by torch.compile."""
        if net not in self._compiled:
            self._compiled[net] = torch.compile(net)
        return self._compiled[net]

    def state_dict(self) -> dict[str, Any]:
        """The state that the envs' next steps depend on; without the envs' own if it has none."""
        envs: Any = None
        if isinstance(self.env, cule.AtariEnv):
            state = self.env.clone_state()
            envs = {"version": state.version, "games": state.games, "tensors": state.tensors}
        elif hasattr(self.env, "state_dict"):
            envs = self.env.state_dict()
        return {"envs": envs, "episodes": self.episodes.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned.

        Raises:
            ValueError: the envs cannot be restored.
        """
        if isinstance(self.env, cule.AtariEnv):
            self.env.restore_state(cule.State(**state["envs"]))
        elif hasattr(self.env, "load_state_dict"):
            self.env.load_state_dict(state["envs"])
        else:
            raise InvalidValue(
                "expected envs with state_dict and load_state_dict to go on from a checkpoint, got "
                f"{type(self.env).__name__}"
            )
        self.episodes.load_state_dict(state["episodes"])

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()
