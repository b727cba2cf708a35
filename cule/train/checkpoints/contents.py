"""The types of a checkpoint's content; a checkpoint with other types counts as damaged."""

from __future__ import annotations

from typing import Any, TypedDict


class _Networks(TypedDict):
    steps: int
    updates: int
    networks: dict[str, dict[str, Any]]


class Trained(_Networks, total=False):
    """The state of a Trainer; without `plan`, training cannot go on from it."""

    attributes: dict[str, tuple[str, Any]]
    plan: dict[str, Any]
    dealt: dict[str, Any]


class _Run(TypedDict):
    algorithm: str
    program: str
    settings: str
    num_actions: int
    args: dict[str, Any]
    frames: int
    seconds: float
    evaluation_seconds: float
    logged: tuple[int, int, float]
    score: float | None
    test: dict[str, float]
    test_frames: int | None
    reached: dict[str, float] | None
    trainer: Trained


class SavedRun(_Run, total=False):
    """The state of a Run.

    Earlier versions did not save `tuned`. `set` is equal in all files of a set of several.
    """

    tuned: dict[str, Any]
    set: str
