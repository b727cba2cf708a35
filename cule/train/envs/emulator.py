"""The environments that algorithms train on: cule's, or ale-py's with the same interface.

Both give one frame per observation (stack_num=1); plan/stores.py keeps frames and builds stacks
of four from them.

Both reset in NEXT_STEP mode: the step that ends an episode returns its final observation. The next
step ignores the action and returns the first observation of the next episode. So the final
observation is stored like any other, and a truncated episode can bootstrap from its value. No
second observation tensor is needed.

The price is one step per episode that teaches nothing; episodes.py finds those steps, and learners
leave them out. SAME_STEP would need the values of all final observations in every step, as the host
does not know which envs are done. DISABLED would need a masked reset in every step, for the same
reason.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np
import torch

import cule
from cule.errors import InvalidValue

EMULATORS = ("cule", "ale-py")
STACK = 4
FRAMESKIP = 4


def in_parts(number: int, count: int) -> list[slice]:
    """Divides `number` things into `count` parts, as equal as possible."""
    ends = [number * i // count for i in range(count + 1)]
    return [slice(*both) for both in pairwise(ends)]


class Env(Protocol):
    """The methods of a vector env that training uses. All tensors are on `device`."""

    num_envs: int
    device: torch.device
    single_action_space: Any

    def reset(self, *, seed: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The first frames, (num_envs, 1, 84, 84) uint8, and infos."""

    def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
        """Frames, clipped rewards (num_envs,), terminated, truncated (num_envs,) bool, and infos.

        Training reads two entries of the infos, both (num_envs,): `raw_reward`, not clipped, and
        `new_game`, bool: this step reset the env.
        """

    def close(self) -> None:
        """Frees the envs."""


class AleEnv:
    """ale_py.AtariVectorEnv with tensors on `device`, to compare cule with.

    Args:
        game: ale-py's name of the game.
        num_envs: how many envs there are.
        device: the device of the tensors.
        options: further keywords of ale_py.AtariVectorEnv.
    """

    def __init__(self, game: str, num_envs: int, device: torch.device, **options: Any):
        import ale_py  # which registers hundreds of ids with gymnasium

        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.num_envs, self.device = num_envs, device
        # step() clips the rewards, as ale-py gives either clipped or raw ones.
        self.env = ale_py.AtariVectorEnv(game, num_envs, reward_clipping=False, **options)
        self.single_action_space = self.env.single_action_space

    @staticmethod
    def _frames_before(infos: dict[str, np.ndarray]) -> np.ndarray:
        """(num_envs,): how many frames the envs had played when their games began.

        It grows with each new game, and at no other time.
        """
        return infos["frame_number"] - infos["episode_frame_number"]

    def _place(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    def reset(self, *, seed: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """As in Env."""
        # ale-py keeps seeds in 32 bits.
        frames, infos = self.env.reset(seed=seed % 2**31)
        self._before = self._frames_before(infos)
        return self._place(frames), {}

    def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
        """As in Env; waits for the device to copy the actions."""
        frames, rewards, terminated, truncated, infos = self.env.step(actions.long().cpu().numpy())
        before, self._before = self._before, self._frames_before(infos)
        placed = {
            "raw_reward": self._place(rewards),
            "new_game": self._place(self._before != before),
        }
        return (
            self._place(frames),
            placed["raw_reward"].sign(),
            self._place(terminated),
            self._place(truncated),
            placed,
        )

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()


def make_env(
    emulator: str,
    game: str,
    num_envs: int,
    device: torch.device,
    *,
    life_loss_ends: bool = False,
    repeat_action_probability: float = 0.0,
    full_action_space: bool = False,
    max_frames: int = 108_000,
    num_threads: int = 0,
    multiprocessors: int | None = None,
    env_device: torch.device | None = None,
) -> Env:
    """Envs for training: single frames, rewards clipped to -1, 0 or 1, resets in NEXT_STEP mode.

    Args:
        emulator: "cule" or "ale-py".
        game: a game both know, such as "pong".
        num_envs: how many envs there are.
        device: the device of the observations, and of cule's emulation without an `env_device`.
        life_loss_ends: a lost life is reported as a termination, though the game goes on.
        repeat_action_probability: the probability of sticky actions.
        full_action_space: offer all 18 actions, not only those that matter in the game.
        max_frames: after which an episode is truncated.
        num_threads: on the CPU; 0: one for each core.
        multiprocessors: with cule on a GPU, as in cule.AtariEnv.
        env_device: where cule emulates.

    Raises:
        ValueError: there is no such emulator, game or device.
    """
    options: dict[str, Any] = {
        "stack_num": 1,
        "frameskip": FRAMESKIP,
        "life_loss_info": life_loss_ends,
        "repeat_action_probability": repeat_action_probability,
        "full_action_space": full_action_space,
        "max_num_frames_per_episode": max_frames,
        "num_threads": num_threads,
    }
    if emulator == "cule":
        env = cule.AtariEnv(
            game, num_envs, device=env_device or device, multiprocessors=multiprocessors,
            output="torch_shared", **options,
        )  # fmt: skip
        return cast(Env, env)
    if emulator == "ale-py":
        # cule has all of ale-py's games under all their names, and suggests names for a wrong one.
        return AleEnv(cule.rom.find_game(game).name, num_envs, device, **options)
    raise InvalidValue(f"expected emulator to be one of {', '.join(EMULATORS)}, got {emulator!r}")
