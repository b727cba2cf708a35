"""A TorchRL EnvBase: observations, rewards and dones stay on the env's device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

from cule.env.keywords import refuse
from cule.env.parts import refuse_objects
from cule.vector_env import AtariEnv

_RESERVED = {
    "autoreset_mode": "TorchRL resets envs that are done",
    "batch_size": "TorchRL steps all envs",
    "num_players": "it has one agent",
    "output": "TorchRL works with tensors",
    "sound_obs": "its observations have no sound",
}


class AtariTorchRLEnv(EnvBase):
    """Atari 2600 games for TorchRL, as one env of batch size (num_envs,).

    Keys: `pixels` (num_envs, stack_num, img_height, img_width) uint8 (`ram`, (num_envs, 128), with
    obs_type="ram"), `action` (num_envs,) int64, `reward` (num_envs, 1) float32, `done`,
    `terminated`, `truncated` (num_envs, 1) bool, `lives` (num_envs, 1) int32. Each step returns
    fresh tensors.

    Args:
        game: as AtariEnv's.
        num_envs: how many consoles.
        device: as AtariEnv's.
        **options: AtariEnv's other keywords, except autoreset_mode, batch_size, num_players,
            output and sound_obs: TorchRL resets envs that are done, and steps all.

    Raises:
        TypeError, ValueError: as AtariEnv's.
    """

    def __init__(
        self,
        game: str | Sequence[str],
        num_envs: int,
        device: str | torch.device | None = None,
        **options: Any,
    ):
        refuse("AtariTorchRLEnv", options, _RESERVED)
        refuse_objects("AtariTorchRLEnv", options)
        self.atari = AtariEnv(game, num_envs, device, autoreset_mode="Disabled", **options)
        super().__init__(device=self.atari.device, batch_size=torch.Size([num_envs]))
        # To EnvBase an env is closed until it says that it is open.
        self.is_closed = False
        self._seed_of_reset: int | None = None
        where: dict[str, Any] = {"device": self.atari.device}
        self._key = "ram" if self.atari.obs_type == "ram" else "pixels"
        shape = (num_envs, *self.atari.single_observation_space.shape)
        column = (num_envs, 1)
        self.observation_spec = Composite(
            {
                self._key: Bounded(0, 255, shape=shape, dtype=torch.uint8, **where),
                "lives": Unbounded(shape=column, dtype=torch.int32, **where),
            },
            shape=(num_envs,),
            **where,
        )
        if self.atari.continuous:
            box = self.atari.single_action_space
            low, high = (
                torch.from_numpy(bound).expand(num_envs, 3) for bound in (box.low, box.high)
            )
            self.action_spec = Bounded(low, high, shape=(num_envs, 3), dtype=torch.float32, **where)
        else:
            count = int(self.atari.single_action_space.n)
            self.action_spec = Categorical(count, shape=(num_envs,), dtype=torch.int64, **where)
        self.reward_spec = Unbounded(shape=column, dtype=torch.float32, **where)
        done = {
            key: Binary(shape=column, dtype=torch.bool, **where)
            for key in ("done", "terminated", "truncated")
        }
        self.done_spec = Composite(done, shape=(num_envs,), **where)

    def _out(
        self, observations: torch.Tensor, info: dict[str, Any], **entries: torch.Tensor
    ) -> TensorDict:
        entries |= {self._key: observations, "lives": info["lives"][:, None]}
        return TensorDict(entries, batch_size=self.batch_size, device=self.device)

    def _reset(self, tensordict: TensorDictBase | None = None, **_: Any) -> TensorDict:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        options = None if mask is None else {"reset_mask": mask.reshape(self.batch_size)}
        seed, self._seed_of_reset = self._seed_of_reset, None
        observations, info = self.atari.reset(seed=seed, options=options)
        none = torch.zeros((*self.batch_size, 1), dtype=torch.bool, device=self.device)
        return self._out(
            observations, info, done=none, terminated=none.clone(), truncated=none.clone()
        )

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        observations, rewards, terminated, truncated, info = self.atari.step(tensordict["action"])
        return self._out(
            observations,
            info,
            reward=rewards.float()[:, None],
            done=(terminated | truncated)[:, None],
            terminated=terminated[:, None],
            truncated=truncated[:, None],
        )

    def _set_seed(self, seed: int | None) -> None:
        self._seed_of_reset = seed

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Frees the envs."""
        super().close(raise_if_closed=raise_if_closed)
        self.atari.close()
