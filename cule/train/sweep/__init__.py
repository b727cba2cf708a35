"""Many trainings on few devices."""

from __future__ import annotations

from cule.train.sweep.jobs import Job, JobState
from cule.train.sweep.sweep import Sweep

__all__ = ["Job", "JobState", "Sweep"]
