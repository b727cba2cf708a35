"""The memory that an operation's call needs while it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Work:
    """The memory that a call needs while it runs, such as the activations of a gradient.

    Attributes:
        samples: how many samples a call has.
        bytes_each: bytes for each sample that is computed at once.
        least: the fewest samples that can be computed at once.
        limit: the most samples that the settings allow at once; None: all.
        gathered: bytes that a sample reads; 0: it is not known how to read them ahead.
        in_place: those of them that need no memory as they are read where they are, unless that is
            the host's memory.
        far: it reads from the host's memory: the plan sets it.
        at_once: samples that are computed at once: the plan sets it, the function reads it.
        ahead: the next samples are read while some are computed: the plan sets it, too.
    """

    samples: int
    bytes_each: int
    least: int = 1
    limit: int | None = None
    gathered: int = 0
    in_place: int = 0
    far: bool = False
    at_once: int = 0
    ahead: bool = False

    def __post_init__(self) -> None:
        self.at_once = min(self.samples, self.limit or self.samples)

    @property
    def _each(self) -> int:
        """Bytes for each sample that is computed at once, wherever it is read from."""
        return self.bytes_each + self.in_place * self.far

    @property
    def bytes(self) -> int:
        """Bytes that a call needs at once."""
        return self.at_once * (self._each + self.gathered * self.ahead)

    @property
    def least_bytes(self) -> int:
        """Bytes that a call needs with the fewest samples at once, without any read ahead."""
        return min(self.least, self.at_once) * self._each

    def fit(self, room: int, *, ahead: bool) -> int:
        """Computes as many samples at once as so many bytes allow; returns how many they are.

        Args:
            room: bytes, at least `least_bytes`.
            ahead: read the next samples from the host's memory ahead, if there is room for them,
                too.
        """
        least, most = min(self.least, self.at_once), self.at_once
        if self._each:
            self.at_once = min(most, room // self._each)
        if ahead and self.far and self.gathered and self.at_once < self.samples:
            some = min(most, room // (self._each + self.gathered))
            self.ahead = some >= least
            self.at_once = some if self.ahead else self.at_once
        return self.at_once
