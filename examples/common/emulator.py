"""The environments that the examples train on: cule's, or ale-py's behind the same few calls.

Both give one frame per observation (stack_num=1); common/frames.py keeps frames and builds stacks of four from them.

Both reset in NEXT_STEP mode: the step that ends an episode returns its final observation, and the step after it ignores
the action and returns the first observation of the next episode. So the final observation is stored like any other,
its value is there to bootstrap from where an episode was truncated, and no second observation tensor is filled or
evaluated.
The price is one step per episode that teaches nothing; `episode_started` finds those, and learners leave them out.
SAME_STEP would need the values of all final observations, in every step, since which envs are done is not known on the
host; DISABLED would need a masked reset for the same reason.

A lost life can report a termination without a reset (life_loss_info). So a reset is told from `episode_frame_number`,
which falls at a reset and only there.
"""

from __future__ import annotations

from typing import Any, Protocol

import ale_py
import numpy as np
import torch

import cule

EMULATORS = ("cule", "ale-py")
STACK = 4
FRAMESKIP = 4


class Env(Protocol):
    """What the examples ask of an environment; all tensors on `device`."""

    num_envs: int
    device: torch.device
    single_action_space: Any

    def reset(self, *, seed: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The first frames, (num_envs, 1, 84, 84) uint8, and infos."""

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Frames, clipped rewards (num_envs,), terminated, truncated (num_envs,) bool, and infos."""

    def close(self) -> None:
        """Frees the envs."""


class AleEnv:
    """ale_py.AtariVectorEnv with tensors on `device`: what cule replaces, to compare with.

    Args:
        game: as ale-py names it.
        num_envs: how many.
        device: where the tensors go.
        options: keywords of ale_py.AtariVectorEnv.
    """

    def __init__(self, game: str, num_envs: int, device: torch.device, **options: Any):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.num_envs, self.device = num_envs, device
        self.env = ale_py.AtariVectorEnv(game, num_envs, **options)
        self.single_action_space = self.env.single_action_space

    def _infos(self, infos: dict[str, Any]) -> dict[str, torch.Tensor]:
        return {
            name: torch.from_numpy(np.asarray(infos[name])).to(self.device)
            for name in ("reward", "episode_frame_number")
            if name in infos
        }

    def reset(self, *, seed: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """As Env has it."""
        # ale-py keeps seeds in 32 bits.
        frames, infos = self.env.reset(seed=seed % 2**31)
        return torch.from_numpy(frames).to(self.device), self._infos(infos)

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As Env has it; waits for the device, which has the actions."""
        frames, rewards, terminated, truncated, infos = self.env.step(actions.cpu().numpy())
        arrays = (frames, rewards, terminated, truncated)
        return *(torch.from_numpy(np.asarray(array)).to(self.device) for array in arrays), self._infos(infos)

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
    max_frames: int = 108_000,
    num_threads: int = 0,
) -> Env:
    """Envs for training: single frames, rewards clipped to -1, 0 or 1, resets in NEXT_STEP mode.

    Args:
        emulator: "cule" or "ale-py".
        game: a game both know, such as "pong".
        num_envs: how many.
        device: where observations are wanted, and where cule emulates.
        life_loss_ends: a lost life is reported as a termination, though the game goes on.
        repeat_action_probability: of sticky actions.
        max_frames: after which an episode is truncated.
        num_threads: on the CPU; 0: one for each core.

    Raises:
        ValueError: there is no such emulator, game or device.
    """
    options = {
        "stack_num": 1,
        "frameskip": FRAMESKIP,
        "reward_clipping": True,
        "life_loss_info": life_loss_ends,
        "repeat_action_probability": repeat_action_probability,
        "max_num_frames_per_episode": max_frames,
        "num_threads": num_threads,
    }
    if emulator == "cule":
        return cule.AtariEnv(game, num_envs, device=device, **options)
    if emulator == "ale-py":
        # cule knows every game that ale-py has, by all of its names, and says which are close to a wrong one.
        return AleEnv(cule.rom.find_game(game).name, num_envs, device, **options)
    raise ValueError(f"expected emulator to be one of {', '.join(EMULATORS)}, got {emulator!r}")


def episode_started(done_before: torch.Tensor, frames_before: torch.Tensor, frames_now: torch.Tensor) -> torch.Tensor:
    """Which envs were reset by a step: (num_envs,) bool.

    Args:
        done_before: (num_envs,) bool, whether the step before reported an end of any kind.
        frames_before: (num_envs,) `episode_frame_number` of the step before.
        frames_now: (num_envs,) `episode_frame_number` of the step.
    """
    return done_before & (frames_now <= frames_before)
