"""Files of JSON lines: read as far as they are whole."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from cule.files import opened

T = TypeVar("T")


@dataclass(frozen=True)
class Lines(Generic[T]):
    """What a file holds.

    Attributes:
        path: the file.
        good: what was made of its lines, but for the damaged ones.
        damaged: for each of those, its number, from 1 on, and what is wrong.
    """

    path: Path
    good: list[T]
    damaged: list[tuple[int, Exception]]

    def kept(self, what: str) -> list[T]:
        """What is good, after a warning for each damaged line, which names it.

        Args:
            what: the lines are, such as "row of results".
        """
        for number, problem in self.damaged:
            message = f"left out line {number} of {self.path}, which is no {what}: {problem}"
            warnings.warn(message, stacklevel=3)
        return self.good


def read_lines(path: Path, parse: Callable[[Any], T]) -> Lines[T]:
    """Reads a file of JSON lines. Empty ones are nothing.

    Args:
        path: the file.
        parse: makes of a line's value what is wanted. What it cannot read is damaged: it raises a
            ValueError, TypeError, LookupError or AttributeError.

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
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as problem:
                found.damaged.append((number, problem))
    return found
