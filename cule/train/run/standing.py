"""How far a run is: times, scores, and what it has reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Attributes that a checkpoint saves; those of evaluations are restored only if the settings of
# evaluations are the same.
SAVED = ("seconds", "evaluation_seconds", "logged", "score")
OF_EVALUATIONS = ("test", "test_frames", "reached")


@dataclass
class Standing:
    """How far a run is.

    Attributes:
        seconds: of training, with logs and checkpoints but without evaluations.
        evaluation_seconds: of evaluations.
        startup_seconds: from the opening of the run until it can train.
        trained: when this process began to train, and when it ended, in seconds since 1970.
        logged: frames, updates and seconds at the last line about training in the log.
        score: of the last episodes in training.
        test: mean and deviation of the last evaluation's scores.
        test_frames: frames at the last evaluation.
        reached: frames and seconds when `stop_at_score` was reached; None: it was not.
        interrupted: a signal has stopped the run.
    """

    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    startup_seconds: float = 0.0
    trained: tuple[float, float] | None = None
    logged: tuple[int, int, float] = (0, 0, 0.0)
    score: float | None = None
    test: dict[str, float] = field(default_factory=dict)
    test_frames: int | None = None
    reached: dict[str, float] | None = None
    interrupted: bool = False

    def state_dict(self) -> dict[str, Any]:
        """The attributes that a checkpoint saves."""
        return {name: getattr(self, name) for name in (*SAVED, *OF_EVALUATIONS)}

    def load_state_dict(self, state: Mapping[str, Any], *, evaluations: bool) -> None:
        """Restores what state_dict() returned.

        Args:
            state: the saved attributes.
            evaluations: whether earlier evaluations count: later ones have the same settings.
        """
        for name in (*SAVED, *(OF_EVALUATIONS if evaluations else ())):
            setattr(self, name, state[name])
        frames, updates, seconds = self.logged  # a list, if a checkpoint has it so
        self.logged = (frames, updates, seconds)
