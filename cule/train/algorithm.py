"""What a user writes: an algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import torch
from torch import nn

from cule.errors import MissingMethod, MissingPart
from cule.train.learning import Copy, Learning
from cule.train.settings import Args

if TYPE_CHECKING:
    from cule.train.batch import Batch
    from cule.train.lowering.declaration import Declaration

A = TypeVar("A", bound=Args)
Values = Mapping[str, torch.Tensor]


class Nets(SimpleNamespace):
    """Networks by name, as attributes."""

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(vars(self))
        raise MissingPart(f"expected one of the networks ({known}), got {name}")


class Algorithm(Generic[A]):
    """An algorithm: what is kept of each step, how to act, when to learn, the loss.

    Args:
        args: the settings.

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
    # Which settings the constructor has read (settings_read.py); None: that is not known.
    read_at_start: set[str] | None = None

    def __init__(self, args: A):
        self.args = args
        self.now = SimpleNamespace()
        self.num_actions = 0
        self.device = torch.device("cpu")

    @property
    def name(self) -> str:
        """The algorithm's name in rows of results."""
        return type(self).__name__

    def _missing(self, method: str) -> MissingMethod:
        return MissingMethod(f"expected {type(self).__name__} to define {method}(), got none")

    def environment(self, num_envs: int, device: torch.device, **options: Any) -> Any:
        """Other envs than the settings': any with AtariEnv's `reset` and `step`; None: those."""
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
