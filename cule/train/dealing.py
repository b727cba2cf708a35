"""What goes on, and what begins anew, where another number of processes resumes a training.

Networks, optimizers, an algorithm's attributes and all counts go on. Each process has other envs
than before, and other parts of the memories that learning reads. So these are not dealt out from
the old files, whose layout is that of each algorithm's program, but begin anew: the program starts
as in a new training, plays without learning until there is enough to learn from, and its steps are
counted on from those before. Random numbers are other ones than at the training's begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Between the seeds of two dealings: above all that a training has.
SEEDS = 2**53


@dataclass(frozen=True)
class Dealt:
    """How often, and when, the envs of a training were dealt anew.

    Attributes:
        steps: of each env before the last time.
        updates: before the last time.
        times: of each time, the frames before it, the processes before and those after it.
    """

    steps: int = 0
    updates: int = 0
    times: tuple[tuple[int, int, int], ...] = ()

    @staticmethod
    def of(trainer: Mapping[str, Any]) -> Dealt:
        """That of a trainer's saved state."""
        saved = trainer.get("dealt")
        if saved is None:
            return Dealt()
        times = tuple((frames, before, after) for frames, before, after in saved["times"])
        return Dealt(saved["steps"], saved["updates"], times)

    def again(self, state: Mapping[str, Any], before: int, after: int) -> Dealt:
        """The same, dealt once more.

        Args:
            state: that of a run.
            before: the processes that have saved it.
            after: those that go on.
        """
        trainer = state["trainer"]
        time = (state["frames"], before, after)
        return Dealt(trainer["steps"], trainer["updates"], (*self.times, time))

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint has of it: nothing if nothing was dealt."""
        if not self.times:
            return {}
        times = [list(time) for time in self.times]
        return {"dealt": {"steps": self.steps, "updates": self.updates, "times": times}}

    @property
    def seed(self) -> int:
        """What is added to the seeds of the envs and of learning."""
        return len(self.times) * SEEDS

    def sentence(self) -> str:
        """What goes on exactly, and what does not."""
        _, before, after = self.times[-1]
        were = f"{before} process{'es were' if before > 1 else ' was'}"
        return (
            f"{after} process{'es go' if after > 1 else ' goes'} on where {were}: networks, "
            "optimizers and counts go on exactly; envs, their random numbers and memories begin "
            "anew, and learning once there is enough to learn from"
        )
