"""Declares, plans and runs training: see docs/training.md."""

from __future__ import annotations

from cule.train.algorithm import Algorithm, Context, Nets
from cule.train.batch import Batch
from cule.train.declaration import Declaration
from cule.train.instances import Instance
from cule.train.layout import Layout
from cule.train.learning import Copy, Learning, Prioritized, Replay
from cule.train.main import explain, main, train
from cule.train.plan.index import cases, maximum, minimum
from cule.train.plan.passes import Passes
from cule.train.plan.plan import Plan
from cule.train.plan.program import Operation, Program, Recurrent
from cule.train.presets import by_device
from cule.train.published.agent import Agent
from cule.train.published.loading import load
from cule.train.settings import Args
from cule.train.tune.tuning import tune

__all__ = [
    "Agent", "Algorithm", "Args", "Batch", "Context", "Copy", "Declaration", "Instance", "Layout",
    "Learning", "Nets", "Operation", "Passes", "Plan", "Prioritized", "Program", "Recurrent",
    "Replay", "by_device", "cases", "explain", "load", "main", "maximum", "minimum", "train",
    "tune",
]  # fmt: skip
