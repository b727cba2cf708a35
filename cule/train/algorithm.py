"""Algorithm, the class that a user derives an algorithm from."""

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
from cule.train.declaration import Declaration, Kind
from cule.train.learning import Copy, Learning
from cule.train.settings import Args

A = TypeVar("A", bound=Args)
Values = Mapping[str, torch.Tensor]


class Nets(SimpleNamespace):
    """An algorithm's networks as attributes, by their names in `networks`."""

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(vars(self))
        raise MissingPart(f"expected one of the networks ({known}), got {name}")


@dataclass(frozen=True)
class Context:
    """The argument of an algorithm's constructor besides the settings.

    Attributes:
        device: where networks compute, and where all tensors are.
        num_actions: how many actions an env has; where actions are vectors (a Box), how many
            numbers one has.
        envs: the envs that `environment` returned; None: the training plays the game of the
            settings.
        now: the current values of `schedules` by name, as attributes: () float32 on the device.
    """

    device: torch.device
    num_actions: int
    envs: Any = None
    now: SimpleNamespace = field(default_factory=SimpleNamespace)


class Algorithm(Generic[A]):
    """An algorithm: the values that are stored of a step, how to act, when and from what to learn.

    Derive from it, and override at least `networks`, `act`, `learning` and `loss`; and `scores` if
    it is to be evaluated.

    Args:
        args: the settings.
        context: the device, the actions and the schedules' values.

    Attributes:
        keeps: values that `act` returns and that are stored of each step, besides the observation,
            action, reward, discount and `played`: the dtype of each by its name, where a value has
            the shape (num_envs,); or a dtype and a shape, such as (torch.float32, 6), where it has
            the shape (num_envs, 6). "actions" may be among them, to store other actions than int64.
        evaluates: values that `evaluate` returns for each observation, by name: dtypes, or dtypes
            and shapes, as in `keeps`.
        corrects: whether the loss corrects for policies that were several updates older when they
            played, as V-trace does with the stored log-probabilities of actions. Without a replay
            memory only such an algorithm may have a `max_staleness` of several iterations.
        now: the current values of `schedules` by name, as attributes: () float32 on the device.
        num_actions: how many actions an env has; where actions are vectors (a Box), how many
            numbers one has.
        device: where networks compute, and where all tensors are.
    """

    keeps: ClassVar[Mapping[str, Kind]] = {}
    evaluates: ClassVar[Mapping[str, Kind]] = {}
    corrects: ClassVar[bool] = False

    # Which settings the constructor has read (lowering/settings_read.py); None: not known.
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
        return overrides_environment(type(self))

    def use_settings(self, args: A, read: frozenset[str] | None) -> None:
        """Replaces `args` by an equal object, such as a copy that notes which settings are read.

        Args:
            args: the settings.
            read: the names of those that the constructor has read; None: that is not known.
        """
        self.args, self.read_at_start = args, read

    def _missing(self, method: str) -> MissingMethod:
        return MissingMethod(f"expected {type(self).__name__} to define {method}(), got none")

    @classmethod
    def environment(cls, args: A, num_envs: int, device: torch.device) -> Any:
        """The envs to train on, where these are not the game of the settings.

        It is a class method, as a training makes its envs before the algorithm, whose constructor
        gets their number of actions.

        Args:
            args: the settings.
            num_envs: how many envs this process plays.
            device: the device of the training. Envs whose observations are on another one get their
                actions there, and what they return is copied.

        Returns:
            A vector env with AtariEnv's `reset` and `step`, in NEXT_STEP mode; None: the training
            makes the envs of the settings.
        """
        return None

    def networks(self, num_actions: int) -> Mapping[str, nn.Module | Copy]:
        """The networks by name, each a module whose weights are trained, or a Copy of one."""
        raise self._missing("networks")

    def schedules(self) -> Mapping[str, Callable[[int], float]]:
        """Numbers that depend on the frames emulated so far, such as the chance of a random action.

        Returns:
            By name, functions from frames to a finite number. Their values are in `now`; that of
            `learning_rate` is given to the optimizer.
        """
        return {}

    def act(self, nets: Nets, observations: torch.Tensor) -> Values:
        """Chooses an action for each env.

        Args:
            nets: the networks that act.
            observations: (num_envs, ...); of a game (num_envs, 4, 84, 84) uint8.

        Returns:
            "actions" (num_envs,) int64, and the values that `keeps` names, (num_envs,) each; or
            both as `keeps` says. Those that `evaluates` names may be there, too. Of envs with
            several players "actions" are (num_envs, num_players), and a batch's rewards as well.
        """
        raise self._missing("act")

    def evaluate(self, nets: Nets, observations: torch.Tensor) -> Values:
        """Computes the values that `evaluates` names, for the batches of `prepare` and `loss`.

        If `act` returns them, too, they have to be the same function of network and observation.
        They are then computed only once where the network has not changed in between.

        Args:
            nets: the networks that learn.
            observations: (n, ...): those of all envs at one step; or at several steps, one after
                the other, if a trial at the start has shown that this makes no difference.

        Returns:
            (n,) each, or (n, ...) as `evaluates` says, by name.
        """
        raise self._missing("evaluate")

    def prepare(self, nets: Nets, batch: Batch) -> Values:
        """Computes further parts of the batches of `loss`.

        It is called once in each phase of learning, with Learning.accumulate for each gradient.

        Args:
            nets: the networks that learn, and copies.
            batch: all steps that are learned from, with `num_envs` sequences.

        Returns:
            (steps, num_envs) float32 each, by name, or with several players also (steps, num_envs,
            num_players); nothing by default.
        """
        return {}

    def learning(self) -> Learning:
        """When and from what to learn."""
        raise self._missing("learning")

    def loss(self, nets: Nets, batch: Batch) -> Values:
        """Computes the loss of a batch.

        Args:
            nets: the networks that learn, and copies.
            batch: what the update learns from.

        Returns:
            "loss", () with a gradient, and numbers to log by name, () each. All are means over the
            batch.
        """
        raise self._missing("loss")

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Makes the optimizer; by default that of the settings.

        Args:
            parameters: all that are trained, float32.

        Returns:
            An optimizer of all parameters. `schedules` can change a learning rate that is a tensor.
        """
        return self.args.make_optimizer(parameters, self.device)

    def norm(self, gradient: torch.Tensor, gradients: list[torch.Tensor]) -> torch.Tensor:
        """The norm by which the gradient is clipped; by default that of all numbers.

        Args:
            gradient: (parameters,) float32, the gradients of all parameters as one vector.
            gradients: the gradient of each parameter.

        Returns:
            () float32.
        """
        return gradient.norm()

    def scores(self, nets: Nets, observations: torch.Tensor) -> torch.Tensor:
        """Computes the policy that evaluations and videos play.

        Args:
            nets: the networks that act.
            observations: (n, 4, 84, 84) uint8.

        Returns:
            (n, num_actions), the actions' log-probabilities.
        """
        raise self._missing("scores")

    def declare(self, declaration: Declaration) -> None:
        """Declares the program. Override it for what needs more, such as a recurrent network.

        Args:
            declaration: takes acting, emulating and learning, in the order of a step.
        """
        declaration.acting(self.act)
        declaration.emulating()
        declaration.learning(self.learning())


def overrides_environment(kind: type[Algorithm[Any]]) -> bool:
    """Whether a class of algorithms has an `environment` of its own."""
    own = inspect.getattr_static(kind, "environment")
    return own is not inspect.getattr_static(Algorithm, "environment")
