"""When and from what an algorithm learns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from typing import Any

from cule.errors import InvalidValue
from cule.train.checks import above, at_least_whole, check_types, within

# Settings of Learning that have no effect with a replay memory.
NO_REPLAY = ("steps", "groups", "epochs", "minibatch", "normalize", "accumulate", "ahead")
# Those that have none with several gradients in an update.
ALONE = ("every", "times", "groups", "epochs", "minibatch", "lag")
# Steps of an env from which one transition can be sampled: the three oldest are only in stacks.
OLDEST = 4


@dataclass(frozen=True)
class Prioritized:
    """Sample in proportion to priorities (Schaul et al., 2016): (priority + epsilon) ** alpha.

    The loss returns "priorities" besides the loss: a number of at least 0 for each of its rows,
    such as the absolute TD error. They are the rows' priorities from then on. What was never
    sampled has the highest priority so far. A batch has `weights`: (1 / chance) ** beta, divided by
    the largest of the update; the loss multiplies its rows by them. Steps that were not played are
    not sampled.

    Attributes:
        alpha: 0: all are as likely as each other; 1: in proportion to the priorities.
        beta: 0: `weights` are 1; 1: they make up for the chances. Or the name of one of the
            algorithm's schedules, of which values below 0 count as 0 and those above 1 as 1.
        epsilon: is added to each priority, so that none is 0.

    Raises:
        ValueError: a number is out of its range.
    """

    alpha: float = 0.6
    beta: float | str = 0.4
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        check_types(self)
        within(0, 1, self, "alpha")
        if not isinstance(self.beta, str):
            within(0, 1, self, "beta")
        above(0, self, "epsilon")


@dataclass(frozen=True)
class Replay:
    """Learn from what is sampled from a memory of the newest steps.

    Attributes:
        memory: transitions of all envs of a process; of each env so many whole steps as fit.
        minibatch: transitions or sequences in an update, in each process.
        n_step: steps of a transition, unless its episode ends before: `rewards` are their
            discounted sum, `discounts` their product, and `next_observations` those after them.
        sequence: steps of a sequence: batches are as those of sequences are, (sequence, minibatch).
            None: single transitions.
        prioritized: how priorities change what is sampled; None: all are as likely as each other.

    Raises:
        TypeError: a number is no whole number.
        ValueError: a number is below 1, or `n_step` has no effect, as there are sequences.
    """

    memory: int
    minibatch: int
    n_step: int = 1
    sequence: int | None = None
    prioritized: Prioritized | None = None

    def __post_init__(self) -> None:
        at_least_whole(1, self, "memory", "minibatch", "n_step", "sequence")
        check_types(self)
        if self.sequence is not None and self.n_step > 1:
            raise InvalidValue(
                f"expected Replay with n_step or with sequence, whose steps a loss sums itself, "
                f"got {self.n_step} and {self.sequence}"
            )

    def steps(self, num_envs: int) -> int:
        """Steps of each env of a process that can be sampled: what a part that is read has to have.

        The three oldest that fit into the memory are only in the stacks of later ones.
        """
        return self.memory // num_envs - (OLDEST - 1)

    @property
    def span(self) -> int:
        """Steps that follow each other in what is sampled, until an episode ends."""
        return self.n_step if self.sequence is None else self.sequence


@dataclass(frozen=True)
class Copy:
    """A network that is a copy of another one, such as a target network. It is not trained.

    Attributes:
        of: the name of the network that is copied.
        every: updates between two copies.
        tau: 1: its weights become those of the other network. Less: they move this share of the way
            to them (Lillicrap et al., 2016); buffers are copied.

    Raises:
        TypeError: `every` is no whole number.
        ValueError: it is below 1, or `tau` is not above 0 and at most 1.
    """

    of: str
    every: int = 1
    tau: float = 1.0

    def __post_init__(self) -> None:
        at_least_whole(1, self, "every")
        check_types(self)
        above(0, self, "tau")
        within(0, 1, self, "tau")


@dataclass(frozen=True)
class Learning:
    """When and from what to learn.

    A phase of learning is some updates at the same step. What they learn from depends on what is
    set: what `replay` samples from a memory, else shuffled `minibatch`es of the last `steps` steps,
    else all these steps of one of `groups` groups of envs, which take turns.

    With `accumulate` a phase is one update, whose gradient is the mean of several. Each is of
    `steps` steps, and computed as soon as these are played. On a GPU that is while the envs play
    the next ones, and with the weights that play all of them.

    Attributes:
        steps: how many steps of an env are learned from.
        every: steps between two phases; None: `steps`, times `accumulate`.
        times: updates in a phase; with minibatches it follows from `epochs`.
        groups: groups of envs that learn in turn.
        epochs: how often a phase goes through all steps, with minibatches.
        minibatch: transitions in an update, in each process; None: whole sequences of steps.
        replay: the replay memory; None: without one, the last steps are learned from.
        lag: 0: learn between two steps. 1: learn while the envs play on, with weights that are one
            iteration old.
        start: steps of each env before the first phase.
        normalize: names of parts of a batch that are shifted and scaled to mean 0 and deviation 1
            in each minibatch.
        whole: an update's loss needs all its rows at once, as it is no mean over rows. Otherwise
            its gradient may be computed in chunks, to which the loss must not make a difference.
        accumulate: gradients of which an update's is the mean.
        ahead: further steps in the batch of each of them, such as those of n-step returns, which
            have to be played first. None is after the last of the update's `steps` * `accumulate`
            steps: there the batch is 0, and `played` False.
    """

    steps: int = 1
    every: int | None = None
    times: int = 1
    groups: int = 1
    epochs: int = 1
    minibatch: int | None = None
    replay: Replay | None = None
    lag: int = 0
    start: int = 0
    normalize: tuple[str, ...] = ()
    whole: bool = False
    accumulate: int = 1
    ahead: int = 0

    @property
    def period(self) -> int:
        """Steps between two phases."""
        return self.steps * self.accumulate if self.every is None else self.every

    @property
    def window(self) -> int:
        """The steps in a batch of whole sequences."""
        return min(self.steps + self.ahead, self.steps * self.accumulate)

    @property
    def waiting(self) -> int:
        """Of the gradients of an update, how many further ones are complete with the last."""
        return min(-(-self.ahead // self.steps), self.accumulate - 1)

    @property
    def beside(self) -> bool:
        """Whether it runs, on a GPU, at the same time as the steps of the envs."""
        return bool(self.lag) or self.waiting < self.accumulate - 1

    @property
    def prioritized(self) -> bool:
        """Whether rows are sampled by priorities."""
        return self.replay is not None and self.replay.prioritized is not None

    def check(self, num_envs: int) -> None:
        """Checks the numbers.

        Args:
            num_envs: envs of this process.

        Raises:
            TypeError: a number is no whole number.
            ValueError: a number is out of its range, or has no effect with the others.
        """
        at_least_whole(
            1, self, "steps", "every", "times", "groups", "epochs", "minibatch", "accumulate"
        )
        at_least_whole(0, self, "start", "lag", "ahead")
        if self.lag > 1:
            raise InvalidValue(f"expected lag of Learning to be 0 or 1, got {self.lag}")
        check_types(self)
        if self.replay is not None:
            self._check_replay(self.replay, num_envs)
            return
        self._check_accumulate()
        if self.epochs > 1 and self.minibatch is None:
            raise InvalidValue(
                f"expected epochs of Learning together with minibatch, got {self.epochs} without"
            )
        if num_envs % self.groups:
            raise InvalidValue(
                f"expected groups of Learning to divide the envs ({num_envs}), got {self.groups}"
            )
        if self.minibatch is not None:
            if self.groups > 1 or self.times > 1:
                raise InvalidValue(
                    "expected Learning with groups and times, or with minibatch, got both"
                )
            if num_envs * self.steps % self.minibatch:
                raise InvalidValue(
                    "expected minibatch of Learning to divide num_envs times steps "
                    f"({num_envs * self.steps}), got {self.minibatch}"
                )

    def _check_replay(self, replay: Replay, num_envs: int) -> None:
        for name, value in self._changed(NO_REPLAY):
            raise InvalidValue(
                f"expected Learning with replay to have no {name}, as an update learns from what "
                f"Replay samples, minibatch of it, got {value!r}"
            )
        # With priorities, those of a whole period change at once.
        more = self.period if replay.prioritized else 0
        steps = OLDEST - 1 + replay.span + more
        if replay.memory < num_envs * steps:
            raise InvalidValue(
                f"expected memory of Replay to hold {steps} steps of each of {num_envs} envs "
                f"({num_envs * steps}) or more, got {replay.memory}"
            )

    def _check_accumulate(self) -> None:
        if self.accumulate == 1:
            if self.ahead:
                raise InvalidValue(
                    "expected ahead of Learning together with accumulate, as no step comes after "
                    f"the last of an update, got {self.ahead} without"
                )
            return
        for name, value in self._changed(ALONE):
            raise InvalidValue(
                "expected Learning with accumulate, one update of all envs after its steps, to "
                f"have no {name}, got {value!r}"
            )

    def _changed(self, names: Collection[str]) -> Iterator[tuple[str, Any]]:
        """Those of some settings that are not as by default, with their values."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in names and value != field.default:
                yield field.name, value

    def updates(self, num_envs: int) -> int:
        """Updates in a phase."""
        if self.minibatch is None or self.replay is not None:
            return self.times
        return self.epochs * (num_envs * self.steps // self.minibatch)

    def transitions(self, num_envs: int) -> int:
        """Transitions from which an update learns: steps of an env, with what followed them."""
        if self.replay is not None:
            return self.replay.minibatch * (self.replay.sequence or 1)
        if self.minibatch is not None:
            return self.minibatch
        return self.steps * self.accumulate * (num_envs // self.groups)

    def first(self, num_envs: int) -> int:
        """The number of steps after which the first phase is: a multiple of the period."""
        least = max(self.start, OLDEST - 1 + self.replay.span if self.replay else self.steps)
        return -(-least // self.period) * self.period
