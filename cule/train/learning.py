"""When and from what an algorithm learns."""

from __future__ import annotations

from dataclasses import dataclass

from cule.errors import InvalidValue


@dataclass(frozen=True)
class Replay:
    """Learn from transitions sampled uniformly from the newest ones.

    Attributes:
        memory: transitions of all envs together.
        minibatch: transitions in an update.
    """

    memory: int
    minibatch: int


@dataclass(frozen=True)
class Copy:
    """A network that is a copy of another one, such as a target network. It is not trained.

    Attributes:
        of: the name of the other one.
        every: updates between two copies.
    """

    of: str
    every: int = 1


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
        minibatch: transitions in an update; None: whole sequences of steps.
        replay: the memory; None: there is none.
        lag: 0: learn between two steps. 1: learn while the envs play on, with weights that are one
            iteration old.
        start: no learning before so many steps.
        normalize: names of parts of a batch that are shifted and scaled to mean 0 and deviation 1
            in each minibatch.
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

    @property
    def period(self) -> int:
        """Steps between two phases."""
        return self.steps if self.every is None else self.every

    def check(self, num_envs: int) -> None:
        """Checks the numbers.

        Args:
            num_envs: envs of this process.

        Raises:
            ValueError: one is wrong.
        """
        for name in ("steps", "every", "times", "groups", "epochs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidValue(
                    f"expected a window of at least one step, and {name} of Learning to be at "
                    f"least 1, got {value}"
                )
        if self.lag not in (0, 1):
            raise InvalidValue(f"expected lag of Learning to be 0 or 1, got {self.lag}")
        if self.replay is not None:
            return
        if num_envs % self.groups:
            raise InvalidValue(
                f"expected groups of Learning to divide the envs ({num_envs}), got {self.groups}"
            )
        if self.minibatch is not None:
            if self.groups > 1 or self.times > 1:
                raise InvalidValue(
                    "expected Learning with groups and times, or with minibatch, got both"
                )
            if self.minibatch < 1 or num_envs * self.steps % self.minibatch:
                raise InvalidValue(
                    "expected minibatch of Learning to divide num_envs times steps "
                    f"({num_envs * self.steps}), got {self.minibatch}"
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
