"""Reads files of JSON lines, and reports the damaged lines."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from cule.disk.files import opened

T = TypeVar("T")
# What reading raises where a file has other JSON than it should.
DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)


@dataclass(frozen=True)
class Lines(Generic[T]):
    """The lines of a file.

    Attributes:
        path: the file.
        good: the lines, as `parse` returned them, without the damaged ones.
        damaged: the number of each damaged line, from 1 on, and what is wrong with it.
    """

    path: Path
    good: list[T]
    damaged: list[tuple[int, Exception]]

    def usable(self, what: str) -> list[T]:
        """The good lines, after a warning for each damaged one.

        Args:
            what: what a line is, such as "row of results", for the warning.
        """
        for number, problem in self.damaged:
            message = f"left out line {number} of {self.path}, which is no {what}: {problem}"
            warnings.warn(message, stacklevel=3)
        return self.good


def read_lines(path: Path, parse: Callable[[Any], T]) -> Lines[T]:
    """Reads a file of JSON lines. Empty lines are skipped.

    Args:
        path: the file.
        parse: takes a line's value and returns what is wanted. It raises one of DAMAGE for a
            damaged line.

    Raises:
        OSError: the file cannot be read.
    """
    found: Lines[T] = Lines(path, [], [])
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found.good.append(parse(json.loads(line)))
            except DAMAGE as problem:
                found.damaged.append((number, problem))
    return found
