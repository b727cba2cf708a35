"""TorchRL's PPOTrainer: its collector, advantages, loss, replay buffer and loop."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.peers.setting import Body, Policy, Setting


class Features(torch.nn.Module):
    """A body, for batches of any number of dimensions."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Features (*batch, features)."""
        *batch, _, _, _ = pictures.shape[: pictures.dim() - self.body.rgb]
        return self.body(pictures.flatten(end_dim=len(batch) - 1)).unflatten(0, batch)


def run(
    setting: Setting, iterated: Callable[[], None], compile: bool = False, graphs: bool = False
) -> None:
    """Trains.

    Args:
        setting: in which it trains.
        iterated: called after each iteration.
        compile: whether torch.compile compiles the collector's policy and the loss.
        graphs: whether the collector's policy is a CUDA graph.
    """
    from tensordict.nn import ProbabilisticTensorDictModule, TensorDictModule
    from tensordict.nn import ProbabilisticTensorDictSequential as Actor
    from torch.distributions import Categorical
    from torchrl.collectors import Collector
    from torchrl.data import LazyTensorStorage, SamplerWithoutReplacement, TensorDictReplayBuffer
    from torchrl.modules import SafeSequential
    from torchrl.objectives import ClipPPOLoss
    from torchrl.trainers.algorithms import PPOTrainer

    from cule.adapters.torchrl import AtariTorchRLEnv

    env = AtariTorchRLEnv(setting.game, setting.num_envs, setting.device, **setting.pictures)
    net = Policy(setting, int(env.atari.single_action_space.n)).to(setting.device)

    body = TensorDictModule(Features(net.body), ["pixels"], ["features"])
    chances = ProbabilisticTensorDictModule(
        ["logits"], ["action"], distribution_class=Categorical, return_log_prob=True
    )
    actor = Actor(body, TensorDictModule(net.actor, ["features"], ["logits"]), chances)
    critic = SafeSequential(body, TensorDictModule(net.critic, ["features"], ["state_value"]))
    loss = ClipPPOLoss(
        actor, critic, clip_epsilon=setting.clip, entropy_coeff=setting.entropy_factor,
        critic_coeff=setting.value_factor, normalize_advantage=True,
    )  # fmt: skip
    collector = Collector(
        env, actor, frames_per_batch=setting.steps, total_frames=10**12, device=setting.device,
        auto_register_policy_transforms=False, compile_policy=compile, cudagraph_policy=graphs,
    )  # fmt: skip
    if compile:
        loss.compile()
    steps = TensorDictReplayBuffer(
        storage=LazyTensorStorage(setting.steps, device=setting.device),
        sampler=SamplerWithoutReplacement(), batch_size=min(setting.minibatch, setting.steps),
    )  # fmt: skip
    trainer = PPOTrainer(
        collector=collector, total_frames=10**12, frame_skip=4, loss_module=loss,
        optim_steps_per_batch=max(1, setting.steps // setting.minibatch),
        optimizer=torch.optim.Adam(net.parameters(), lr=setting.learning_rate, eps=1e-5),
        num_epochs=setting.epochs, clip_norm=setting.max_grad_norm, progress_bar=False,
        gamma=setting.gamma, lmbda=setting.gae_lambda, replay_buffer=steps, enable_logging=False,
        save_trainer_interval=10**12,
    )  # fmt: skip
    trainer.register_op("post_steps", lambda: iterated())
    trainer.train()
