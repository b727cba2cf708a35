"""RLlib's PPO, with the envs and the learner in this process: pip install "ray[rllib]"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import cule
from benchmarks.peers.setting import Policy, Setting
from cule.registration import make_vector_env


def run(setting: Setting, iterated: Callable[[], None], compile: bool = False) -> None:
    """Trains.

    Args:
        setting: in which it trains.
        iterated: called after each iteration.
        compile: whether torch.compile compiles the network where it acts and where it learns.
    """
    import ray
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis import ValueFunctionAPI
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch import TorchRLModule

    class Module(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
        def setup(self) -> None:
            self.net = Policy(setting, int(self.action_space.n))

        def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
            return {Columns.ACTION_DIST_INPUTS: self.net(batch[Columns.OBS])[0]}

        def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
            return self.net(batch[Columns.OBS])[1][:, 0]

    def make(context: dict[str, Any]) -> Any:
        # Only to learn the spaces, RLlib asks for a single env.
        if "num_envs" not in context:
            return cule.SingleAtariEnv(setting.game, device=setting.device, **setting.pictures)
        return make_vector_env(
            setting.game, context["num_envs"], device=setting.device, **setting.pictures
        )

    ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True, log_to_driver=False)
    ray.tune.register_env("cule", make)
    spec = RLModuleSpec(module_class=Module)
    algorithm = config_of(setting, compile).rl_module(rl_module_spec=spec).build_algo()
    try:
        while True:
            algorithm.train()
            iterated()
    finally:
        algorithm.stop()


def config_of(setting: Setting, compile: bool) -> Any:
    """RLlib's configuration, without the network; `compile` as of `run`."""
    from ray.rllib.algorithms.ppo import PPOConfig

    on_gpu = int(setting.device.startswith("cuda"))
    return (
        PPOConfig()
        .environment("cule")
        .framework(
            "torch", torch_compile_learner=compile, torch_compile_worker=compile,
            torch_compile_learner_dynamo_backend="inductor",
            torch_compile_worker_dynamo_backend="inductor",
        )
        .env_runners(
            num_env_runners=0, num_envs_per_env_runner=setting.num_envs,
            rollout_fragment_length=setting.num_steps,
            gym_env_vectorize_mode="vector_entry_point", num_gpus_per_env_runner=on_gpu,
        )
        .learners(num_learners=0, num_gpus_per_learner=on_gpu)
        .training(
            train_batch_size_per_learner=setting.steps, minibatch_size=setting.minibatch,
            num_epochs=setting.epochs, lr=setting.learning_rate, gamma=setting.gamma,
            lambda_=setting.gae_lambda, clip_param=setting.clip,
            vf_loss_coeff=setting.value_factor, entropy_coeff=setting.entropy_factor,
            grad_clip=setting.max_grad_norm,
            use_kl_loss=False,
        )
    )  # fmt: skip
