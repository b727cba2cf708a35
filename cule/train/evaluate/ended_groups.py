"""Groups of an evaluation's episodes that have ended, on the disk: one that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cule.disk.forms import is_number
from cule.programs.results import append_row, read_rows


class EndedGroups:
    """The scores of groups that have ended.

    They are in a file of the run's folder until the whole evaluation has ended.

    Args:
        folder: the run's folder.
        what: all that decides the scores; an evaluation that differs in any of it has another file.
        sizes: the number of episodes of each group, by the number of its first.

    Attributes:
        scores: (episodes,) float64 of each group that has ended, by the number of its first.
    """

    def __init__(self, folder: Path, what: Mapping[str, Any], sizes: Mapping[int, int]):
        word = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
        self.path = folder / f"evaluation-{word}.jsonl"
        self.scores: dict[int, np.ndarray] = {}
        if not self.path.exists():
            return
        for row in read_rows(self.path):
            first, scores = row.get("first"), row.get("scores")
            if not isinstance(first, int) or not isinstance(scores, list):
                continue
            if len(scores) == sizes.get(first) and all(map(is_number, scores)):
                self.scores[first] = np.array(scores, dtype=np.float64)

    @property
    def episodes(self) -> int:
        """How many episodes they are."""
        return sum(map(len, self.scores.values()))

    def add(self, first: int, scores: np.ndarray) -> None:
        """Keeps the scores of another group.

        Raises:
            ValueError: the file cannot be written.
        """
        append_row(self.path, {"first": first, "scores": scores.tolist()})

    def remove(self) -> None:
        """Deletes the file: the evaluation has ended."""
        self.path.unlink(missing_ok=True)
