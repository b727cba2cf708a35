"""When and from what an algorithm learns."""

from __future__ import annotations

from dataclasses import dataclass, fields

from cule.errors import InvalidValue
from cule.train.checks import at_least_whole, check_types

# Settings of Learning that have no effect with a replay memory.
NO_REPLAY = ("steps", "groups", "epochs", "minibatch", "normalize")
# Steps of an env from which one transition can be sampled: the three oldest are only in stacks.
OLDEST = 4


@dataclass(frozen=True)
class Replay:
    """Learn from transitions sampled uniformly from the newest ones.

    Attributes:
        memory: transitions of all envs of a process; of each env so many whole steps as fit.
        minibatch: transitions in an update, in each process.

    Raises:
        TypeError: a number is no whole number.
        ValueError: a number is below 1.
    """

    memory: int
    minibatch: int

    def __post_init__(self) -> None:
        at_least_whole(1, self, "memory", "minibatch")
        check_types(self)


@dataclass(frozen=True)
class Copy:
    """A network that is a copy of another one, such as a target network. It is not trained.

    Attributes:
        of: the name of the network that is copied.
        every: updates between two copies.

    Raises:
        TypeError: `every` is no whole number.
        ValueError: it is below 1.
    """

    of: str
    every: int = 1

    def __post_init__(self) -> None:
        at_least_whole(1, self, "every")


@dataclass(frozen=True)
class Learning:
    """When and from what to learn.

    A phase of learning is some updates at the same step. What they learn from depends on what is
    set: `replay` transitions of a memory, else shuffled `minibatch`es of the last `steps` steps,
    else all these steps of one of `groups` groups of envs, which take turns.

    Attributes:
        steps: how many steps of an env are learned from.
        every: steps between two phases; None: `steps`.
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

    @property
    def period(self) -> int:
        """Steps between two phases."""
        return self.steps if self.every is None else self.every

    def check(self, num_envs: int) -> None:
        """Checks the numbers.

        Args:
            num_envs: envs of this process.

        Raises:
            TypeError: a number is no whole number.
            ValueError: a number is out of its range, or has no effect with the others.
        """
        at_least_whole(1, self, "steps", "every", "times", "groups", "epochs", "minibatch")
        at_least_whole(0, self, "start", "lag")
        if self.lag > 1:
            raise InvalidValue(f"expected lag of Learning to be 0 or 1, got {self.lag}")
        check_types(self)
        if self.replay is not None:
            self._check_replay(self.replay, num_envs)
            return
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
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in NO_REPLAY and value != field.default:
                raise InvalidValue(
                    f"expected Learning with replay to have no {field.name}, as an update learns "
                    f"from sampled transitions, minibatch of Replay of them, got {value!r}"
                )
        least = num_envs * OLDEST
        if replay.memory < least:
            raise InvalidValue(
                f"expected memory of Replay to hold {OLDEST} steps of each of {num_envs} envs "
                f"({least}) or more, got {replay.memory}"
            )

    def updates(self, num_envs: int) -> int:
        """Updates in a phase."""
        if self.minibatch is None or self.replay is not None:
            return self.times
        return self.epochs * (num_envs * self.steps // self.minibatch)

    def first(self, num_envs: int) -> int:
        """The number of steps after which the first phase is: a multiple of the period."""
        least = max(self.start, 1 if self.replay else self.steps)
        return -(-least // self.period) * self.period
