"""The systems: each trains for ever, and says when an iteration is done.

`run(setting, iterated)` calls `iterated()` after each iteration, which may take its time and ends
the training by an exception. What a system's own code cannot do in a setting is an exception, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.libraries import MODULES
from benchmarks.peers import cleanrl, rl_games, rllib, torchrl
from benchmarks.peers.setting import Body, Policy, Setting
from cule.train.distributed.process_group import ProcessGroup
from cule.train.trainer import Trainer
from examples.ppo import ppo

Iterated = Callable[[], None]


class LogPolicy(Policy):
    """Logarithms of probabilities, and values, as cule.train's PPO wants them."""

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, num_actions) and (n,)."""
        logits, values = super().forward(pictures)
        return logits.float().log_softmax(1), values[:, 0].float()


def by_cule(setting: Setting, iterated: Iterated, **options: Any) -> None:
    """cule.train. RGB frames are stored once, and stacked when they are read.

    Args:
        setting: in which it trains.
        iterated: called after each iteration.
        options: further settings of PPO.
    """

    class Compared(ppo.PPO):
        @classmethod
        def environment(cls, args: Any, num_envs: int, device: torch.device) -> Any:
            return None if setting.size is None else setting.env(stack_num=1)

        def networks(self, num_actions: int) -> dict[str, nn.Module]:
            return {"net": LogPolicy(setting, num_actions)}

    args = ppo.Args(
        game=setting.game, device=setting.device, num_envs=setting.num_envs,
        num_steps=setting.num_steps, minibatch_size=setting.minibatch,
        update_epochs=setting.epochs, bf16=False, total_frames=10**12,
        learning_rate=setting.learning_rate, gamma=setting.gamma, gae_lambda=setting.gae_lambda,
        clip_coef=setting.clip, ent_coef=setting.entropy_factor, vf_coef=setting.value_factor,
        max_grad_norm=setting.max_grad_norm, num_threads=1,
        memory_budget=None if setting.memory is None else 0.9 * setting.memory, **options,
    ).on(torch.device(setting.device))  # fmt: skip
    process = ProcessGroup(0, 1, torch.device(setting.device))
    with contextlib.closing(Trainer(Compared, args, process)) as trainer:
        while True:
            trainer.iterate()
            iterated()


def by_stable_baselines3(setting: Setting, iterated: Iterated) -> None:
    """stable-baselines3, whose rollouts are numpy arrays on the host."""
    import stable_baselines3
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    from cule.adapters.stable_baselines3 import AtariVecEnv

    class Features(BaseFeaturesExtractor):
        def __init__(self, space: Any):
            body = Body(setting)
            super().__init__(space, body.features)
            self.body = body

        def forward(self, pictures: torch.Tensor) -> torch.Tensor:
            return self.body(pictures)

    class Rollouts(BaseCallback):
        begun = False

        def _on_rollout_start(self) -> None:
            if self.begun:
                iterated()
            self.begun = True

        def _on_step(self) -> bool:
            return True

    env = AtariVecEnv(setting.game, setting.num_envs, setting.device, **setting.pictures)
    model = stable_baselines3.PPO(
        "CnnPolicy", env, learning_rate=setting.learning_rate, n_steps=setting.num_steps,
        batch_size=setting.minibatch, n_epochs=setting.epochs, gamma=setting.gamma,
        gae_lambda=setting.gae_lambda, clip_range=setting.clip, ent_coef=setting.entropy_factor,
        vf_coef=setting.value_factor, max_grad_norm=setting.max_grad_norm,
        device=setting.device,
        policy_kwargs={"features_extractor_class": Features, "net_arch": [],
                       "normalize_images": False},
    )  # fmt: skip
    model.learn(10**12, callback=Rollouts())


# The package whose version a row has. CleanRL is none.
PACKAGES = {name: MODULES[name] for name in ("stable-baselines3", "RLlib", "TorchRL", "rl_games")}
SYSTEMS: dict[str, Callable[[Setting, Iterated], None]] = {
    "cule.train": by_cule,
    "cule.train, lag 1": lambda setting, iterated: by_cule(setting, iterated, lag=1),
    "cule.train, compiled": lambda setting, iterated: by_cule(setting, iterated, compile=True),
    "CleanRL": cleanrl.run,
    "stable-baselines3": by_stable_baselines3,
    "RLlib": rllib.run,
    "TorchRL": torchrl.run,
    "rl_games": rl_games.run,
}
