"""The settings of train.py in one dataclass; the strings under the fields are the help texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from cule.train.checks import MAX_SEED, above, at_least, within
from cule.train.presets import by_device, filled


@dataclass
class Args:
    """Trains A2C with V-trace on Atari games, thousands of environments at once.

    Frames are emulated frames: a step of one env is four of them. The paper's "training frames" are
    a quarter.
    """

    game: str = "pong"
    """the game, one of those that cule has"""
    folder: Path = Path("runs/a2c_vtrace")
    """where the log, the checkpoints and the plot go"""
    resume: bool = False
    """continue exactly from the checkpoint in the folder; start a new run if there is none"""
    overwrite: bool = False
    """start a new run in a folder with another run's checkpoints, and delete them"""
    emulator: Literal["cule", "ale-py"] = "cule"
    """cule, or ale-py on the CPU to compare with"""
    device: str | None = None
    """cpu, cuda or cuda:1; by default cuda if there is one; under torchrun each process uses a GPU
    of its own"""
    seed: int = 0
    """seed of the weights, the actions and the envs"""

    num_envs: int | None = by_device(gpu=1200, cpu=120)
    """number of envs, over all processes (1,200 on a GPU, 120 on a CPU)"""
    num_batches: int = 20
    """groups of envs, which update the network in turn; 1 with steps_per_update = n_steps is
    vanilla A2C"""
    n_steps: int = 20
    """length of the rollouts in an update, in steps"""
    steps_per_update: int = 1
    """steps that all envs play between two updates"""
    updates_at_once: int = 1
    """updates between two phases of play, each by the next group; with 2 every step is used
    twice"""
    overlap: bool = False
    """learn while the envs play the next steps, with weights that are one iteration old; on a GPU
    each uses a part of it"""
    multiprocessors: int = 0
    """on a GPU with cule: how many of its multiprocessors are reserved for emulation; 0: half of
    them with overlap, so that the others can learn at the same time, and none without"""
    total_frames: int | None = by_device(gpu=200_000_000, cpu=20_000_000)
    """when to stop (200,000,000 on a GPU, 20,000,000 on a CPU)"""
    warmup_steps: int = 300
    """steps that all envs play before the first update, so that their games are in different
    states"""
    max_seconds: float | None = None
    """when to stop, in seconds of training"""

    life_loss_ends: bool = True
    """in training, a lost life ends an episode (the game goes on)"""
    sticky: float = 0.0
    """probability that a frame repeats the last frame's action"""
    max_episode_frames: int = 108_000
    """frames after which an episode is truncated"""

    model: Literal["nature", "impala"] = "nature"
    """the Nature CNN, as in the paper, or the IMPALA ResNet"""
    width: float = 1.0
    """multiplies the network's channels and features"""
    optimizer: Literal["adam", "rmsprop"] = "adam"
    """the optimizer"""
    learning_rate: float = 6.5e-4
    """the optimizer's learning rate"""
    anneal: bool = False
    """decrease the learning rate linearly, to 0 at total_frames"""
    adam_epsilon: float = 1e-5
    """the optimizer's epsilon"""
    rmsprop_decay: float = 0.99
    """decay of RMSprop's mean square"""
    gamma: float = 0.99
    """discount of a step"""
    value_weight: float = 0.5
    """weight of the value's squared error in the loss"""
    entropy_weight: float = 0.01
    """weight of the policy's entropy in the loss"""
    max_grad_norm: float = 0.5
    """gradients with a larger norm are scaled down to this"""
    rho_bar: float = 1.0
    """V-trace's threshold of ratios in the targets and in the policy gradient"""
    c_bar: float = 1.0
    """V-trace's threshold of ratios in the trace"""
    trace_decay: float = 1.0
    """V-trace's lambda"""

    bf16: bool = True
    """on a GPU, compute in bfloat16 (weights and sums stay in float32)"""
    channels_last: bool = True
    """use the channels_last memory format"""
    compile: bool = False
    """compile the network and the loss with torch.compile"""
    cuda_graphs: bool = True
    """on a GPU, capture learning and, with cule, playing as CUDA graphs and replay them"""
    learner_chunk: int = 65_536
    """the most observations in one forward and backward pass; larger updates accumulate gradients
    over several passes"""
    num_threads: int = 0
    """CPU threads of the emulator and of torch; 0: one for each core"""

    log_every: int = 50
    """updates between two lines of the log; the host waits for the device only for these"""
    checkpoint_every: int | None = by_device(gpu=50_000_000, cpu=1_000_000)
    """frames between two checkpoints (50,000,000 on a GPU, 1,000,000 on a CPU); one is also written
    at the end"""
    progress: bool = True
    """show a progress bar"""
    tensorboard: bool = True
    """write TensorBoard events to the folder"""
    plot: bool = True
    """draw the score against wall clock and frames at the end"""

    eval_every: int = 0
    """frames between two evaluations on ale-py, which do not count as training time; 0: only one
    at the end"""
    eval_from: float | None = None
    """no evaluation except the last while the mean score in training is below this"""
    eval_episodes: int = 32
    """episodes of an evaluation, all played at the same time; 0: no evaluation"""
    eval_sticky: float = 0.0
    """sticky actions' probability in evaluations"""
    eval_max_frames: int = 108_000
    """frames after which an evaluation's episode is truncated"""
    stop_at_score: float | None = None
    """stop after an evaluation whose mean score is at least this"""
    results: Path | None = None
    """file to which the run's result is appended, as a JSON line; the run's folder gets it, too"""

    @property
    def algorithm(self) -> str:
        """The name of the algorithm with these settings."""
        once = self.steps_per_update == self.n_steps and self.updates_at_once == 1
        on_policy = self.num_batches == 1 and once and not self.overlap
        return "A2C" if on_policy else "A2C+V-trace"

    def use_threads(self) -> None:
        """Lets torch use as many CPU threads as the emulator.

        Raises:
            ValueError: the number is negative.
        """
        at_least(0, self, "num_threads")
        if self.num_threads:
            torch.set_num_threads(self.num_threads)

    def on(self, device: torch.device, known: Mapping[str, Any] | None = None) -> Args:
        """The settings for this device.

        Those that are not set are filled in. The CPU computes in float32 and has no CUDA graphs.

        Args:
            device: where the program computes.
            known: the settings of the run that is resumed, if one is.
        """
        args = filled(self, device, known)
        if device.type == "cuda":
            return args
        return dataclasses.replace(args, bf16=False, cuda_graphs=False)

    def check(self, world_size: int) -> None:
        """Checks the numbers, alone and together.

        Raises:
            ValueError: one is wrong.
        """
        at_least(
            1, self, "num_envs", "num_batches", "n_steps", "steps_per_update", "updates_at_once",
            "log_every",
            "learner_chunk", "max_episode_frames", "eval_max_frames",
        )  # fmt: skip
        at_least(
            0, self, "multiprocessors", "total_frames", "warmup_steps", "max_seconds",
            "learning_rate", "adam_epsilon",
            "max_grad_norm", "rho_bar", "c_bar", "checkpoint_every", "eval_every", "eval_episodes",
        )  # fmt: skip
        within(0, 1, self, "sticky", "gamma", "trace_decay", "rmsprop_decay", "eval_sticky")
        within(0, MAX_SEED, self, "seed")
        above(0, self, "width")
        if self.steps_per_update > self.n_steps:
            raise ValueError(
                f"expected steps_per_update to be at most n_steps ({self.n_steps}), as nothing "
                f"would be learned from the other steps, got {self.steps_per_update}"
            )
        if self.num_envs % (world_size * self.num_batches):
            raise ValueError(
                f"expected num_envs to be a multiple of num_batches times the number of processes "
                f"({self.num_batches} x {world_size}), got {self.num_envs}"
            )
        if self.stop_at_score is not None and not (self.eval_every and self.eval_episodes):
            raise ValueError(
                "expected eval_every and eval_episodes above 0 with stop_at_score: evaluations "
                "have it"
            )
        if self.resume and self.overwrite:
            raise ValueError("expected resume or overwrite, got both")
        if self.resume and self.emulator != "cule":
            raise ValueError(
                "expected emulator cule with resume: ale-py's vector environment cannot save its "
                "states"
            )
