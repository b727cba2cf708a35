"""What a user writes: an algorithm."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import nn

from cule.errors import MissingMethod, MissingPart
from cule.train.batch import Batch
from cule.train.declaration import Declaration
from cule.train.learning import Copy, Learning
from cule.train.settings import Args

A = TypeVar("A", bound=Args)
Values = Mapping[str, torch.Tensor]


class Nets(SimpleNamespace):
    """Networks by name, as attributes."""

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(vars(self))
        raise MissingPart(f"expected one of the networks ({known}), got {name}")


@dataclass(frozen=True)
class Context:
    """What a training gives its algorithm.

    Attributes:
        device: where everything is.
        num_actions: actions of the envs.
        envs: those that `environment` returned; None: those of the settings.
        now: the values of `schedules`, as tensors of one number on the device, by name.
    """

    device: torch.device
    num_actions: int
    envs: Any = None
    now: SimpleNamespace = field(default_factory=SimpleNamespace)


class Algorithm(Generic[A]):
    """An algorithm: what is kept of each step, how to act, when to learn, the loss.

    Args:
        args: the settings.
        context: what the training gives it.

    Attributes:
        keeps: what `act` returns that is kept of each step, besides the observation, action,
            reward, discount and played: name and dtype of a number for each env. "actions" may be
            named, to keep them as another dtype than int64.
        evaluates: what `evaluate` returns: name and dtype of a number for each env.
        now: the values of `schedules`, as tensors of one number on the device, by name.
        num_actions: actions of the envs.
        device: where everything is.
    """

    keeps: ClassVar[Mapping[str, torch.dtype]] = {}
    evaluates: ClassVar[Mapping[str, torch.dtype]] = {}

    # Which settings the constructor has read (lowering/settings_read.py); None: nobody looked.
    read_at_start: frozenset[str] | None = None

    def __init__(self, args: A, context: Context):
        self.args, self.context = args, context
        self.now, self.num_actions, self.device = context.now, context.num_actions, context.device

    @property
    def name(self) -> str:
        """The algorithm's name in rows of results."""
        return type(self).__name__

    @property
    def prepares(self) -> bool:
        """Whether its class has a `prepare` of its own."""
        return type(self).prepare is not Algorithm.prepare

    @property
    def brings_envs(self) -> bool:
        """Whether its class has envs of its own, so that ale-py cannot evaluate it."""
        own = inspect.getattr_static(type(self), "environment")
        return own is not inspect.getattr_static(Algorithm, "environment")

    def use_settings(self, args: A, read: frozenset[str] | None) -> None:
        """Uses these settings from now on, which are the same ones, or a copy that notes reads.

        Args:
            args: the settings.
            read: which of them the constructor has read; None: nobody looked.
        """
        self.args, self.read_at_start = args, read

    def _missing(self, method: str) -> MissingMethod:
        return MissingMethod(f"expected {type(self).__name__} to define {method}(), got none")

    @classmethod
    def environment(cls, args: A, num_envs: int, device: torch.device) -> Any:
        """Other envs than the settings': any with AtariEnv's `reset` and `step`; None: those.

        A class method, as a training makes its envs before the algorithm, which gets their number
        of actions.

        Args:
            args: the settings.
            num_envs: how many envs this process plays.
            device: where observations are wanted.
        """
        return None

    def networks(self, num_actions: int) -> Mapping[str, nn.Module | Copy]:
        """The networks by name."""
        raise self._missing("networks")

    def schedules(self) -> Mapping[str, Callable[[int], float]]:
        """Numbers that depend on the frames emulated so far, such as the chance of a random action.

        `learning_rate` is the optimizer's.
        """
        return {}

    def act(self, nets: Nets, observations: torch.Tensor) -> Values:
        """Chooses actions.

        Args:
            nets: the networks.
            observations: (num_envs, ...).

        Returns:
            "actions" (num_envs,), and what `keeps` and `evaluates` name.
        """
        raise self._missing("act")

    def evaluate(self, nets: Nets, observations: torch.Tensor) -> Values:
        """Values of observations, as `evaluates` names them, for the batch of `prepare` and `loss`.

        If `act` returns them, too, they have to be the same function of network and observation.
        They are then computed only once where the network has not changed in between.
        """
        raise self._missing("evaluate")

    def prepare(self, nets: Nets, batch: Batch) -> Values:
        """What the batches of `loss` have in addition, computed once in a phase of learning.

        Returns:
            (steps, num_envs) each; nothing by default.
        """
        return {}

    def learning(self) -> Learning:
        """When and from what to learn."""
        raise self._missing("learning")

    def loss(self, nets: Nets, batch: Batch) -> Values:
        """The loss of a batch: "loss", a scalar, and what to log. All are means over the batch."""
        raise self._missing("loss")

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """The optimizer. A learning rate that is a tensor can be changed while training."""
        return self.args.make_optimizer(parameters, self.device)

    def norm(self, gradient: torch.Tensor, gradients: list[torch.Tensor]) -> torch.Tensor:
        """The gradient's norm: of all numbers at once, or of its parts."""
        return gradient.norm()

    def scores(self, nets: Nets, observations: torch.Tensor) -> torch.Tensor:
        """For evaluations: how likely each action is, as log-probabilities (n, num_actions)."""
        raise self._missing("scores")

    def declare(self, declaration: Declaration) -> None:
        """Declares the program. An unusual algorithm, such as a recurrent one, declares more."""
        declaration.acting(self.act)
        declaration.emulating()
        declaration.learning(self.learning())
