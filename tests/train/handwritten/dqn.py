"""DQN (Mnih et al., 2015) on many Atari games at once, with its replay memory on the device.

Every `steps_per_update` steps of all envs the network is updated `updates_at_once` times, each time
from `minibatch` transitions sampled from the memory. The memory stores each frame once and gathers
stacks when they are read; a million frames take 7 GB. The target of a transition:

    Q(x_t, a_t)  <-  r_t + gamma_t max_a Q_target(x_{t+1}, a)

with gamma_t = 0 where x_{t+1} is terminal.

With --double the learning network chooses the action of the maximum. Truncated episodes bootstrap
from their final observation, which is stored like any other. Steps that were not played but reset
an env do not count.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from cule.train.checks import MAX_SEED, above, at_least, within
from cule.train.envs.emulator import FRAMESKIP, STACK, make_env
from cule.train.nn import draws
from cule.train.nn.models import initialised, make_features
from cule.train.presets import by_device
from handwritten.episodes import Episodes
from handwritten.graphed import Graphed
from handwritten.steps import StepRing


@dataclass
class Args:
    """Trains DQN on Atari games. Frames are emulated frames, four in a step."""

    game: str = "pong"
    """the game, one of those that cule has"""
    emulator: Literal["cule", "ale-py"] = "cule"
    """cule, or ale-py on the CPU to compare with"""
    device: str | None = None
    """cpu, cuda or cuda:1; by default cuda if there is one"""
    seed: int = 0
    """seed of the weights, the actions and the envs"""
    num_envs: int | None = by_device(gpu=256, cpu=16)
    """envs (256 on a GPU, 16 on a CPU)"""
    num_threads: int = 0
    """CPU threads of the emulator; 0: one for each core"""
    total_frames: int | None = by_device(gpu=40_000_000, cpu=10_000_000)
    """when to stop (40,000,000 on a GPU, 10,000,000 on a CPU)"""
    memory: int | None = by_device(gpu=1_000_000, cpu=100_000)
    """transitions that the memory holds (1,000,000 on a GPU, 100,000 on a CPU)"""
    first_update: int | None = by_device(gpu=80_000, cpu=10_000)
    """transitions before the first update (80,000 on a GPU, 10,000 on a CPU)"""
    steps_per_update: int = 1
    """steps of all envs between two rounds of updates"""
    updates_at_once: int = 1
    """updates in a round"""
    minibatch: int | None = by_device(gpu=512, cpu=64)
    """transitions of an update (512 on a GPU, 64 on a CPU)"""
    target_every: int = 500
    """updates between two copies of the network to the target network"""
    double: bool = False
    """double DQN: the learning network chooses the next action, the target network values it"""
    learning_rate: float = 1e-4
    """Adam's learning rate"""
    gamma: float = 0.99
    """discount of a step"""
    first_epsilon: float = 1.0
    """epsilon, the probability of a random action, at the beginning"""
    last_epsilon: float = 0.01
    """epsilon at the end"""
    epsilon_frames: int | None = by_device(gpu=4_000_000, cpu=1_000_000)
    """frames in which epsilon falls from the first value to the last (4,000,000 on a GPU, 1,000,000
    on a CPU)"""
    model: Literal["nature", "impala"] = "nature"
    """the Nature CNN or the IMPALA ResNet"""
    width: float = 1.0
    """multiplies the network's channels and features"""
    bf16: bool = True
    """on a GPU, compute in bfloat16"""
    cuda_graphs: bool = True
    """on a GPU, replay updates, and with cule steps, as CUDA graphs"""
    log_every: int = 200
    """rounds of updates between two updates of the progress bar's score, for which the host waits
    for the device"""
    progress: bool = True
    """show a progress bar"""
    results: Path | None = None
    """file to which the run's result is appended, as a JSON line"""


class QNetwork(nn.Module):
    """Values of all actions: (n, 4, 84, 84) uint8 to (n, num_actions) float32.

    Args:
        num_actions: how many actions there are.
        name: "nature" or "impala".
        width: multiplies the number of channels and features.
    """

    def __init__(self, num_actions: int, name: str, width: float):
        super().__init__()
        self.features, features = make_features(name, width)
        self.values = initialised(nn.Linear(features, num_actions), gain=1.0)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The values of all actions."""
        return self.values(self.features(observations)).float()


class Memory(StepRing):
    """The newest transitions of each env.

    Args:
        transitions: of each env; the ring has one more slot, for the newest frame.
        num_envs: envs.
        device: where it is kept.
    """

    def __init__(self, transitions: int, num_envs: int, device: torch.device):
        super().__init__(transitions + 1, num_envs, device, actions=torch.uint8)

    def draw(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Samples places of transitions uniformly: slots and envs, (count,) int64 each.

        The three oldest frames are only used in the stacks of later ones. There have to be at least
        four steps.
        """
        steps = torch.clamp(self.position, max=self.length - 1) - (STACK - 1)
        back = (
            torch.rand(count, dtype=torch.float64, device=self.position.device) * steps
        ).long() + 1
        envs = torch.randint(self.num_envs, (count,), device=self.position.device)
        return (self.position - back) % self.length, envs


class Dqn:
    """Envs, networks and the memory; playing and learning.

    Args:
        args: the settings, after `filled`.
        device: where everything is.

    Raises:
        ValueError: a game or a setting is wrong.
    """

    def __init__(self, args: Args, device: torch.device):
        at_least(
            1,
            args,
            "num_envs",
            "steps_per_update",
            "updates_at_once",
            "minibatch",
            "target_every",
            "log_every",
        )
        at_least(1, args, "epsilon_frames")
        at_least(0, args, "num_threads", "total_frames", "learning_rate")
        within(0, 1, args, "gamma", "first_epsilon", "last_epsilon")
        within(0, MAX_SEED, args, "seed")
        above(0, args, "width")
        if args.memory < args.num_envs * STACK or args.first_update < args.num_envs * STACK:
            raise ValueError(
                f"expected memory and first_update to be at least {STACK} steps of all envs "
                f"({args.num_envs * STACK}), got {args.memory} and {args.first_update}"
            )
        self.args, self.device = args, device
        on_gpu = device.type == "cuda"
        self.env = make_env(
            args.emulator, args.game, args.num_envs, device, num_threads=args.num_threads
        )
        torch.manual_seed(args.seed)
        self.num_actions = int(self.env.single_action_space.n)
        self.network = QNetwork(self.num_actions, args.model, args.width).to(device)
        self.network.to(memory_format=torch.channels_last)
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=args.bf16 and on_gpu)
        self.parameters = list(self.network.parameters())
        # They have the parameters' memory format, as a fused optimizer needs.
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        # A tensor, as a schedule changes it within a captured step: its rounding is float32's.
        rate = torch.tensor(args.learning_rate, device=device)
        self.optimizer = torch.optim.Adam(
            self.parameters, lr=rate, eps=1e-5, fused=True, capturable=on_gpu
        )
        self.memory = Memory(args.memory // args.num_envs, args.num_envs, device)
        self.episodes = Episodes(args.num_envs, device)
        self.epsilon = torch.tensor(args.first_epsilon, device=device)
        frames, _ = self.env.reset(seed=args.seed)
        self.episodes.begin()
        self.memory.begin(frames)
        graphs = args.cuda_graphs and on_gpu
        self.step = Graphed(self._step) if graphs and args.emulator == "cule" else self._step
        self.update = Graphed(self._update) if graphs else self._update
        self.steps = self.updates = 0

    @property
    def frames(self) -> int:
        """Frames emulated so far."""
        return self.steps * self.args.num_envs * FRAMESKIP

    @torch.no_grad()
    def _step(self) -> None:
        """Plays one step in every env."""
        with self.autocast:
            best = self.network(self.memory.observations()).argmax(dim=1)
        with draws.keyed(self.args.seed, 0, self.memory.position):
            chances, random = draws.uniform(best), draws.integers(best, self.num_actions)
        actions = torch.where(chances < self.epsilon, random, best)
        frames, rewards, terminated, _, infos = self.env.step(actions)
        started = self.episodes.follow(infos)
        step = {
            "actions": actions,
            "rewards": rewards,
            "discounts": self.args.gamma * (~terminated).float(),
            "played": ~started,
        }
        self.memory.append(step, frames, started)

    def targets(self, slots: torch.Tensor, envs: torch.Tensor) -> torch.Tensor:
        """The targets of transitions' values: (n,) float32.

        Args:
            slots: of the memory, (n,) int64.
            envs: the same.
        """
        memory = self.memory
        following = memory.frames.stacks((slots + 1) % memory.length, envs)
        with torch.no_grad(), self.autocast:
            values = self.target(following)
            chooser = self.network(following) if self.args.double else values
        best = values.gather(1, chooser.argmax(dim=1, keepdim=True)).squeeze(1)
        return memory.rewards[slots, envs] + memory.discounts[slots, envs] * best

    def _update(self) -> None:
        """One step of the optimizer."""
        slots, envs = self.memory.draw(self.args.minibatch)
        targets = self.targets(slots, envs)
        with self.autocast:
            values = self.network(self.memory.frames.stacks(slots, envs))
        chosen = values.gather(1, self.memory.actions[slots, envs].long().unsqueeze(1)).squeeze(1)
        errors = functional.smooth_l1_loss(chosen, targets, reduction="none")
        loss = (errors * self.memory.played[slots, envs]).mean()
        gradients = torch.autograd.grad(loss, self.parameters)
        torch._foreach_copy_([parameter.grad for parameter in self.parameters], gradients)
        self.optimizer.step()

    @torch.no_grad()
    def copy_to_target(self) -> None:
        """Copies the network to the target network."""
        torch._foreach_copy_(list(self.target.parameters()), self.parameters)

    def iterate(self) -> None:
        """Plays some steps, and learns once there is enough to learn from."""
        args = self.args
        passed = min(1.0, self.frames / args.epsilon_frames)
        self.epsilon.fill_(args.first_epsilon + passed * (args.last_epsilon - args.first_epsilon))
        for _ in range(args.steps_per_update):
            self.step()
        self.steps += args.steps_per_update
        if self.steps * args.num_envs < args.first_update:
            return
        for _ in range(args.updates_at_once):
            self.update()
            self.updates += 1
            if self.updates % args.target_every == 0:
                self.copy_to_target()

    def close(self) -> None:
        """Frees the envs and the captured graphs (see Trainer.close in
        a2c.py)."""
        del self.step, self.update
        self.env.close()
