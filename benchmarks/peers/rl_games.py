"""rl_games' PPO: pip install rl_games."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.peers.setting import Policy, Setting


def run(setting: Setting, iterated: Callable[[], None], compile: bool | str = True) -> None:
    """Trains.

    Args:
        setting: in which it trains.
        iterated: called after each iteration.
        compile: whether torch.compile compiles the network, as rl_games does by itself; or its
            mode.
    """
    from rl_games.common.algo_observer import AlgoObserver
    from rl_games.torch_runner import Runner

    class Observer(AlgoObserver):
        last = 0

        def after_clear_stats(self) -> None:
            pass

        def after_print_stats(self, frame: int, epoch_num: int, total_time: float) -> None:
            # It is called twice in an iteration.
            if epoch_num > self.last:
                self.last = epoch_num
                iterated()

    register_envs(setting)
    register_network(setting)
    runner = Runner(Observer())
    parameters = parameters_of(setting)
    parameters["config"]["torch_compile"] = compile
    runner.load({"params": parameters})
    runner.run({"train": True, "play": False})


def register_envs(setting: Setting) -> None:
    """Makes the envs known to rl_games, as cule_batch."""
    from rl_games.common import env_configurations, vecenv
    from rl_games.common.ivecenv import IVecEnv

    class Envs(IVecEnv):
        def __init__(self, name: str, num_actors: int, **_: Any):
            self.env = setting.env()

        def reset(self) -> torch.Tensor:
            return self.env.reset()[0]

        def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
            pictures, rewards, terminated, truncated, _ = self.env.step(actions)
            return pictures, rewards.float(), terminated | truncated, {}

        def get_env_info(self) -> dict[str, Any]:
            return {
                "observation_space": self.env.single_observation_space,
                "action_space": self.env.single_action_space,
            }

    vecenv.register("CULE_BATCH", Envs)
    env_configurations.register(
        "cule_batch", {"vecenv_type": "CULE_BATCH", "env_creator": lambda **_: None}
    )


def register_network(setting: Setting) -> None:
    """Makes the network known to rl_games, as compared."""
    from rl_games.algos_torch import model_builder
    from rl_games.algos_torch.network_builder import NetworkBuilder

    class Network(NetworkBuilder.BaseNetwork):
        def __init__(self, actions_num: int):
            super().__init__()
            self.net = Policy(setting, actions_num)

        def is_separate_critic(self) -> bool:
            return False

        def is_rnn(self) -> bool:
            return False

        def forward(self, given: dict[str, Any]) -> tuple[Any, ...]:
            return (*self.net(given["obs"]), None)

    class Builder(NetworkBuilder):
        def build(self, name: str, actions_num: int, **_: Any) -> Network:
            return Network(actions_num)

    model_builder.register_network("compared", Builder)


def parameters_of(setting: Setting) -> dict[str, Any]:
    """What a file of rl_games says."""
    config = {
        "name": "compared", "env_name": "cule_batch", "num_actors": setting.num_envs,
        "horizon_length": setting.num_steps, "minibatch_size": setting.minibatch,
        "mini_epochs": setting.epochs, "learning_rate": setting.learning_rate,
        "gamma": setting.gamma, "tau": setting.gae_lambda, "e_clip": setting.clip,
        "entropy_coef": setting.entropy_factor, "critic_coef": 2 * setting.value_factor,
        "grad_norm": setting.max_grad_norm, "truncate_grads": True, "clip_value": False,
        "normalize_advantage": True, "normalize_input": False, "normalize_value": False,
        "lr_schedule": None, "score_to_win": 10**9, "save_frequency": 0,
        "save_best_after": 10**9, "max_epochs": -1, "print_stats": False, "ppo": True,
        "reward_shaper": {"scale_value": 1.0}, "device": setting.device,
        "device_name": setting.device, "train_dir": tempfile.mkdtemp(),
    }  # fmt: skip
    return {
        "seed": 1, "algo": {"name": "a2c_discrete"}, "model": {"name": "discrete_a2c"},
        "network": {"name": "compared"}, "config": config,
    }  # fmt: skip
