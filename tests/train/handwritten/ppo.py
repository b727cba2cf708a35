"""PPO (Schulman et al., 2017) on thousands of Atari games at once, everything on the device.

The envs play `n_steps` steps. Then the network is trained on them for some epochs of shuffled
minibatches; the clipped loss keeps the policy near the one that played. The rollout of
../a2c_vtrace stores each frame once and stacks them when a minibatch reads them. Advantages are
Schulman et al.'s (2016) GAE. In the notation of cule/train/nn/returns.py:

    delta_t = r_t + gamma_t V(x_{t+1}) - V(x_t)
    A_t     = delta_t + gamma_t lambda A_{t+1},   0 for a step that was not played but reset the env

A termination makes gamma_t 0. A truncation does not: its step bootstraps from the final
observation's value. The trace ends there, as the next step was not played.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from cule.train.checks import MAX_SEED, above, at_least, within
from cule.train.envs.emulator import FRAMESKIP, make_env
from cule.train.nn.models import ActorCritic
from cule.train.presets import by_device
from handwritten.graphed import Graphed
from handwritten.player import Player
from handwritten.rollout import Rollout


@dataclass
class Args:
    """Trains PPO on Atari games. Frames are emulated frames, four in a step."""

    game: str = "pong"
    """the game, one of those that cule has"""
    emulator: Literal["cule", "ale-py"] = "cule"
    """cule, or ale-py on the CPU to compare with"""
    device: str | None = None
    """cpu, cuda or cuda:1; by default cuda if there is one"""
    seed: int = 0
    """seed of the weights, the actions and the envs"""
    num_envs: int | None = by_device(gpu=1024, cpu=16)
    """envs (1,024 on a GPU, 16 on a CPU)"""
    num_threads: int = 0
    """CPU threads of the emulator; 0: one for each core"""
    total_frames: int | None = by_device(gpu=40_000_000, cpu=10_000_000)
    """when to stop (40,000,000 on a GPU, 10,000,000 on a CPU)"""
    n_steps: int | None = by_device(gpu=32, cpu=128)
    """steps that the envs play between two phases of learning (32 on a GPU, 128 on a CPU)"""
    epochs: int = 3
    """epochs: how many times a phase of learning uses each step"""
    minibatch: int | None = by_device(gpu=4096, cpu=256)
    """steps of a minibatch, from which an update is made (4,096 on a GPU, 256 on a CPU)"""
    learning_rate: float = 2.5e-4
    """Adam's learning rate; it decreases linearly to 0 at total_frames"""
    gamma: float = 0.99
    """discount of a step"""
    trace_decay: float = 0.95
    """GAE's lambda"""
    clip: float = 0.1
    """PPO's epsilon: ratios of probabilities are clipped to 1 plus or minus this"""
    value_weight: float = 0.5
    """weight of the value's squared error in the loss"""
    entropy_weight: float = 0.01
    """weight of the policy's entropy in the loss"""
    max_grad_norm: float = 0.5
    """gradients with a larger norm are scaled down to this"""
    model: Literal["nature", "impala"] = "nature"
    """the Nature CNN or the IMPALA ResNet"""
    width: float = 1.0
    """multiplies the network's channels and features"""
    bf16: bool = True
    """on a GPU, compute in bfloat16"""
    cuda_graphs: bool = True
    """on a GPU with cule, replay a step of play as a CUDA graph"""
    progress: bool = True
    """show a progress bar"""
    results: Path | None = None
    """file to which the run's result is appended, as a JSON line"""


@torch.no_grad()
def gae(
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    played: torch.Tensor,
    values: torch.Tensor,
    trace_decay: float,
) -> torch.Tensor:
    """Advantages (T, B) of steps with rewards, discounts and played (T, B), and values (T + 1,
    B)."""
    deltas = rewards + discounts * values[1:] - values[:-1]
    advantage = torch.zeros_like(values[0])
    advantages = torch.empty_like(rewards)
    for step in reversed(range(len(rewards))):
        advantage = (deltas[step] + discounts[step] * trace_decay * advantage) * played[step]
        advantages[step] = advantage
    return advantages


class Ppo:
    """Envs, network, and the two phases, playing and learning.

    Args:
        args: the settings, after `filled`.
        device: where everything is.

    Raises:
        ValueError: a game or a setting is wrong.
    """

    def __init__(self, args: Args, device: torch.device):
        at_least(1, args, "num_envs", "n_steps", "epochs")
        at_least(2, args, "minibatch")  # so that advantages have a standard deviation
        at_least(0, args, "num_threads", "total_frames", "learning_rate", "clip", "max_grad_norm")
        within(0, 1, args, "gamma", "trace_decay")
        within(0, MAX_SEED, args, "seed")
        above(0, args, "width")
        if args.num_envs * args.n_steps % args.minibatch:
            raise ValueError(
                "expected minibatch to divide num_envs times n_steps "
                f"({args.num_envs * args.n_steps}), got {args.minibatch}"
            )
        self.args, self.device = args, device
        self.env = make_env(
            args.emulator, args.game, args.num_envs, device, num_threads=args.num_threads
        )
        torch.manual_seed(args.seed)
        self.model = ActorCritic(int(self.env.single_action_space.n), args.model, args.width).to(
            device
        )
        self.autocast = torch.autocast(
            device.type, torch.bfloat16, enabled=args.bf16 and device.type == "cuda"
        )
        self.model.to(memory_format=torch.channels_last)
        rate = torch.tensor(args.learning_rate, device=device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate, eps=1e-5, fused=True)
        self.rollout = Rollout(args.num_envs, args.n_steps, 1, device)
        self.player = Player(self.env, self.model, self.rollout, args.gamma, args.seed)
        self.player.begin(args.seed)
        graphs = args.cuda_graphs and device.type == "cuda" and args.emulator == "cule"
        self.step = Graphed(self._step) if graphs else self._step
        self.frames = self.updates = 0

    def _step(self) -> None:
        with self.autocast:
            self.player.step()

    def play(self, tell: Callable[[int], Any] = lambda frames: None) -> None:
        """Plays n_steps steps. After each it calls `tell` with the number of frames so far."""
        for _ in range(self.args.n_steps):
            self.step()
            self.frames += self.args.num_envs * FRAMESKIP
            tell(self.frames)

    def minibatches(self, steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The last steps, shuffled into minibatches: indices of steps and envs, (minibatch,) int64
        each."""
        places = torch.randperm(steps * self.args.num_envs, device=self.device)
        for some in places.split(self.args.minibatch):
            yield some // self.args.num_envs, some % self.args.num_envs

    @torch.no_grad()
    def values(self, slots: torch.Tensor) -> torch.Tensor:
        """The values of all envs' observations in some slots: (slots, num_envs) float32."""
        envs = torch.arange(self.args.num_envs, device=self.device)
        with self.autocast:
            return torch.stack(
                [self.model(self.rollout.frames.stacks(slot, envs))[1] for slot in slots.unbind()]
            )

    def learn(self) -> None:
        """Trains on the steps just played for `epochs` epochs."""
        args, rollout = self.args, self.rollout
        left = 1.0 - self.frames / args.total_frames
        self.optimizer.param_groups[0]["lr"].fill_(args.learning_rate * max(left, 0.0))
        slots = (
            rollout.position + torch.arange(-args.n_steps, 1, device=self.device)
        ) % rollout.length
        values, steps = self.values(slots), slots[:-1]
        played = rollout.played[steps].float()
        advantages = gae(
            rollout.rewards[steps], rollout.discounts[steps], played, values, args.trace_decay
        )
        targets = advantages + values[:-1]
        for _ in range(args.epochs):
            for step, env in self.minibatches(args.n_steps):
                slot = slots[step]
                with self.autocast:
                    log_pi, value = self.model(rollout.frames.stacks(slot, env))
                advantage, mask = advantages[step, env], played[step, env]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                chosen = log_pi.gather(1, rollout.actions[slot, env].unsqueeze(1)).squeeze(1)
                ratio = (chosen - rollout.log_mu[slot, env]).exp()
                near = ratio.clamp(1 - args.clip, 1 + args.clip)
                policy_loss = -(torch.minimum(ratio * advantage, near * advantage) * mask).mean()
                value_loss = (0.5 * (value - targets[step, env]).square() * mask).mean()
                entropy = -((log_pi.exp() * log_pi).sum(dim=1) * mask).mean()
                loss = policy_loss + args.value_weight * value_loss - args.entropy_weight * entropy
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), args.max_grad_norm)
                self.optimizer.step()
                self.updates += 1

    def close(self) -> None:
        """Frees the envs and the captured graphs (see Trainer.close in
        a2c.py)."""
        del self.step
        self.env.close()
