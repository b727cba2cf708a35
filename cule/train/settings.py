"""The settings that all algorithms have; the strings under the fields are the help texts."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import torch
import tyro
from torch import nn

from cule.devices.device import MAX_THREADS, compute_with
from cule.errors import InvalidType, InvalidValue, shown
from cule.train.checks import MAX_SEED, above, at_least, check_types, within
from cule.train.layout import LAYOUT_HELP, Layout, Strategy
from cule.train.nn.eager_optimizer import RMSprop
from cule.train.nn.models import MAX_WIDTH, ModelName
from cule.train.nn.optimizers import Adam, Muon
from cule.train.nn.rewards import RewardName
from cule.train.presets import by_device, filled

LoggerName = Literal["tensorboard", "wandb", "trackio", "none"]
# GiB.
MAX_MEMORY = 2.0**20
# Seconds. Signs of life come ten times in a timeout, and at most each second.
LEAST_TIMEOUT, MOST_TIMEOUT = 1, 30 * 86_400
Self = TypeVar("Self", bound="Args")


@dataclass
class Args:
    """Trains on Atari games. Frames are emulated frames: a step of one env is four of them."""

    game: str = "pong"
    """the game, one of those that cule has"""
    folder: Path = Path("runs/train")
    """where the log, the checkpoints and the plot go"""
    resume: bool = False
    """continue exactly from the checkpoint in the folder; start a new run if there is none"""
    overwrite: bool = False
    """start a new run in a folder with another run's checkpoints, and delete them"""
    explain: bool = False
    """print the plan, and do not train"""
    explain_picture: Path | None = None
    """with explain: time an iteration, and draw when each operation runs into this PNG, PDF or SVG
    file"""
    tuned: bool = False
    """use the result of cule.train.tune for this game and device, for settings that have their
    defaults"""
    emulator: Literal["cule", "ale-py"] = "cule"
    """cule, or ale-py on the CPU to compare with"""
    device: str | None = None
    """cpu, cuda or cuda:1; by default cuda if there is one; under torchrun each process uses a GPU
    of its own, or that of the layout"""
    layout: Annotated[str, tyro.conf.arg(help=LAYOUT_HELP)] = "together"
    """who acts and who learns: a text as in `cule.train.layout.LAYOUTS`"""
    reduction: Strategy | None = None
    """how processes that learn average gradients: through the host, over rings of GPUs, or first
    inside each GPU; by default whichever suits the layout"""
    timeout: float = 600.0
    """seconds after which several processes give up one of which nothing is heard, and the most
    that a message between them takes; one that was killed is noticed at once"""
    env_device: Literal["cpu"] | None = None
    """cpu: emulate on the CPU, whatever learns; by default on `device`"""
    env_groups: int = 1
    """groups of envs on the CPU that are in flight on its threads: while some are emulated, the
    network acts for others"""
    seed: int = 0
    """seed of the weights, the actions and the envs"""

    num_envs: int | None = by_device(gpu=1024, cpu=16)
    """number of envs, over all processes (1,024 on a GPU, 16 on a CPU)"""
    total_frames: int | None = by_device(gpu=40_000_000, cpu=10_000_000)
    """when to stop (40,000,000 on a GPU, 10,000,000 on a CPU)"""
    max_seconds: float | None = None
    """when to stop, in seconds of training"""
    schedule_by: Literal["frames", "seconds"] = "frames"
    """what annealing and an algorithm's schedules follow: frames, up to total_frames; or also
    seconds, so that they are at their end when max_seconds are over, and numbers depend on how fast
    the machine is"""
    max_staleness: int | None = None
    """where some processes act and others learn: the most updates by which the policy that plays
    may lag behind the networks that learn from it; by default those of one iteration, for which
    those who act always wait"""
    lag: int = 0
    """1: learn while the envs play the next steps, with weights that are one iteration old"""
    multiprocessors: int = 0
    """on a GPU with cule: how many of its multiprocessors are reserved for emulation; 0: none
    without a lag; with one, as many as are found to be fastest while the others learn"""

    life_loss_ends: bool = False
    """in training, a lost life ends an episode (the game goes on)"""
    sticky: float = 0.0
    """probability that a frame repeats the last frame's action"""
    full_action_space: bool = False
    """offer all 18 actions, not only those that matter in the game"""
    rewards: RewardName = "clipped"
    """what is learned from. clipped: -1, 0 and 1; root: sign(r) (sqrt(|r| + 1) - 1) + r / 1000, of
    which a large reward is more than a small one"""
    max_episode_frames: int = 108_000
    """frames after which an episode is truncated"""

    model: ModelName = "nature"
    """the Nature CNN, the same with each layer normalized or with an LSTM after its features, or
    the IMPALA ResNet"""
    width: float = 1.0
    """multiplies the network's channels and features, by at most 64"""
    optimizer: Literal["adam", "muon", "rmsprop"] = "adam"
    """the optimizer; muon: Muon for weights of layers, Adam for biases"""
    learning_rate: float = 2.5e-4
    """the optimizer's learning rate"""
    anneal_lr: bool = False
    """decrease the learning rate linearly, to 0 at total_frames"""
    adam_epsilon: float = 1e-5
    """the optimizer's epsilon"""
    rmsprop_decay: float = 0.99
    """decay of RMSprop's mean square"""
    muon_momentum: float = 0.95
    """decay of Muon's mean of gradients"""
    gamma: float = 0.99
    """discount of a step"""
    max_grad_norm: float | None = 0.5
    """gradients with a larger norm are scaled down to this; None: none are"""

    bf16: bool = True
    """on a GPU, compute in bfloat16 (weights and sums stay in float32)"""
    channels_last: bool = True
    """use the channels_last memory format"""
    deterministic: bool = False
    """on a GPU, use only algorithms of cuDNN that give the same numbers each time, so that a
    resumed run is exact there, too; slower"""
    compile: bool = False
    """compile the network and the loss with torch.compile"""
    cuda_graphs: bool = True
    """on a GPU, capture the program as CUDA graphs and replay them"""
    learner_chunk: int = 65_536
    """the most observations in one forward and backward pass; larger updates accumulate gradients
    over several passes"""
    memory_budget: float | None = None
    """GiB of the device's memory that may be used: learning then goes in smaller chunks, and
    observations to the host, if they have to; None: no limit"""
    num_threads: int = 0
    """CPU threads of the emulator and of torch; 0: the emulator has one for each CPU that this
    process may use, and torch for half of them, as its threads wait for each other: on busy CPUs
    that takes more time than they save"""

    log_every: int = 50
    """updates between two lines of the log, which at most each iteration has; the host waits for
    the device only for these"""
    checkpoint_every: int | None = by_device(gpu=50_000_000, cpu=1_000_000)
    """frames between two checkpoints (50,000,000 on a GPU, 1,000,000 on a CPU); one is also written
    at the end"""
    keep_checkpoints: bool = False
    """keep all checkpoints, not only the newest two"""
    progress: bool = True
    """show a progress bar"""
    logger: LoggerName = "tensorboard"
    """where numbers go besides log.jsonl: to TensorBoard events in the folder, to Weights & Biases,
    to Trackio, or nowhere"""
    tensorboard: bool = True
    """--no-tensorboard is the old name of --logger none, and goes with the next release"""
    json: bool = False
    """print the result as a row of JSON at the end, as result.jsonl has it, not in three lines"""
    plot: bool = True
    """draw the score against wall clock and frames at the end"""

    eval_every: int = 0
    """frames between two evaluations, which do not count as training time; 0: only one at the
    end"""
    eval_after: int = 0
    """no evaluation except the last before so many frames"""
    eval_from: float | None = None
    """no evaluation except the last while the mean score in training is below this"""
    eval_episodes: int = 32
    """episodes of an evaluation, all played at the same time; 0: no evaluation"""
    eval_emulator: Literal["cule", "ale-py"] = "cule"
    """what plays the evaluations' episodes, on CPU threads: cule, or ale-py, which takes longer and
    gives the same scores where eval_sticky is 0"""
    eval_sticky: float = 0.0
    """sticky actions' probability in evaluations"""
    eval_max_frames: int = 108_000
    """frames after which an evaluation's episode is truncated"""
    stop_at_score: float | None = None
    """stop after an evaluation whose mean score is at least this"""
    results: Path | None = None
    """file to which the run's result is appended, as a JSON line; the run's folder gets it, too"""

    def __post_init__(self) -> None:
        """Checks each field's type. Without `tensorboard` the logger is none.

        Raises:
            ValueError: one has another.

        Warns:
            FutureWarning: `tensorboard` is False.
        """
        check_types(self)
        if not self.tensorboard:
            said = "--no-tensorboard is --logger none now, and goes with the next release"
            warnings.warn(said, FutureWarning, stacklevel=3)
            if self.logger == "tensorboard":
                self.logger = "none"
            self.tensorboard = True

    @property
    def anneals(self) -> bool:
        """Whether a setting falls to 0 at total_frames, so that total_frames cannot change."""
        return any(value for name, value in vars(self).items() if name.startswith("anneal_"))

    def frames_after(self, seconds: float) -> int:
        """The part of total_frames that schedules have reached after so many seconds, at least."""
        if self.schedule_by == "frames":
            return 0
        assert self.total_frames is not None and self.max_seconds is not None
        return int(self.total_frames * min(1.0, seconds / max(self.max_seconds, 1e-9)))

    def falling(self, name: str) -> Callable[[int], float]:
        """A schedule: a setting's value after so many frames, which falls to 0 at total_frames."""
        assert self.total_frames is not None
        value, end = getattr(self, name), max(1, self.total_frames)
        return lambda frames: value * max(0.0, 1.0 - frames / end)

    def use_threads(self) -> None:
        """Sets how many CPU threads torch uses.

        Raises:
            ValueError: the number is negative or too large.
        """
        within(0, MAX_THREADS, self, "num_threads")
        compute_with(self.num_threads)

    def on(self: Self, device: torch.device, known: Mapping[str, Any] | None = None) -> Self:
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

        Args:
            world_size: how many processes act.

        Raises:
            ValueError: one is wrong.
        """
        layout = self._checked_layout()
        if self.explain_picture is not None and not self.explain:
            raise InvalidValue("expected explain_picture together with explain")
        at_least(1, self, "max_staleness", "num_envs", "env_groups", "log_every", "learner_chunk",
                 "max_episode_frames", "eval_max_frames")  # fmt: skip
        at_least(
            0, self, "multiprocessors", "total_frames", "max_seconds", "learning_rate",
            "adam_epsilon", "max_grad_norm", "checkpoint_every", "eval_every", "eval_after",
            "eval_episodes", "lag",
        )  # fmt: skip
        if self.schedule_by == "seconds" and self.max_seconds is None:
            raise InvalidValue("expected max_seconds with schedule_by=seconds, got None")
        within(0, 1, self, "sticky", "gamma", "rmsprop_decay", "muon_momentum", "eval_sticky")
        within(0, MAX_SEED, self, "seed")
        above(0, self, "width")
        within(0, MAX_WIDTH, self, "width")
        if self.memory_budget is not None:
            above(0, self, "memory_budget")
            within(0, MAX_MEMORY, self, "memory_budget")
        assert self.num_envs is not None
        if self.num_envs % world_size:
            raise InvalidValue(
                f"expected num_envs to be a multiple of the number of processes ({world_size}), "
                f"got {self.num_envs}"
            )
        layout.check_envs(world_size, self.num_envs)
        fewest = layout.fewest_envs(world_size, self.num_envs)
        if self.env_groups > fewest:
            raise InvalidValue(
                f"expected env_groups to be at most the envs of a process ({fewest}), got "
                f"{self.env_groups}"
            )
        if self.emulator != "cule" and (self.env_groups > 1 or self.env_device):
            raise InvalidValue(
                f"expected emulator cule with env_groups or env_device, got {self.emulator}"
            )
        if self.stop_at_score is not None and not (self.eval_every and self.eval_episodes):
            raise InvalidValue(
                "expected eval_every and eval_episodes above 0 with stop_at_score: evaluations "
                "have it"
            )
        if self.resume and self.overwrite:
            raise InvalidValue("expected resume or overwrite, got both")
        if self.resume and self.emulator != "cule":
            raise InvalidValue(
                "expected emulator cule with resume: ale-py's vector environment cannot save its "
                "states"
            )

    def _checked_layout(self) -> Layout:
        """The layout.

        Raises:
            ValueError: it is none, or does not go with another setting.
        """
        layout = Layout.parse(self.layout)
        if layout.budget is not None and self.multiprocessors:
            raise InvalidValue(
                f"expected multiprocessors in the layout or as a setting, got {self.layout} and "
                f"{self.multiprocessors}"
            )
        if self.max_staleness is not None and not layout.crosses:
            raise InvalidValue(
                "expected max_staleness with a layout in which some processes only act, got "
                f"{self.layout}"
            )
        return layout

    def make_optimizer(
        self, parameters: list[nn.Parameter], device: torch.device
    ) -> torch.optim.Optimizer:
        """The optimizer. Its learning rate is a tensor, which a captured step reads."""
        on_gpu = device.type == "cuda"
        rate = torch.tensor(self.learning_rate, dtype=torch.float32, device=device)
        if self.optimizer == "adam":
            return Adam(parameters, rate, self.adam_epsilon)
        if self.optimizer == "muon":
            return Muon(parameters, rate, self.muon_momentum, self.adam_epsilon)
        return RMSprop(
            parameters, lr=rate, alpha=self.rmsprop_decay, eps=self.adam_epsilon,
            capturable=on_gpu, foreach=on_gpu,
        )  # fmt: skip


def as_saved(args: Args) -> dict[str, Any]:
    """Settings as plain values."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in dataclasses.asdict(args).items()
    }


def begin(args: Any) -> None:
    """Checks settings before anything is done with them, and lets torch use their threads.

    Raises:
        TypeError: they are not settings.
        ValueError: a field was given a value of another type, or the threads are too many.
    """
    if not isinstance(args, Args):
        raise InvalidType(f"expected settings, a train.Args or a subclass, got {shown(args)}")
    check_types(args)
    within(LEAST_TIMEOUT, MOST_TIMEOUT, args, "timeout")
    args.use_threads()
