"""Numbers of an algorithm that depend on the frames so far."""

from __future__ import annotations

from typing import Any

import torch

from cule.train.algorithm import Algorithm
from cule.train.lowering.method_checks import check_schedules, number_of


class Schedules:
    """An algorithm's schedules, with their values as tensors, which captured steps read.

    Args:
        algorithm: whose; its `now` gets the tensors.

    Raises:
        ValueError: what `schedules` returns makes no sense.
    """

    def __init__(self, algorithm: Algorithm[Any]):
        self._functions = check_schedules(algorithm.schedules())
        if algorithm.args.anneal_lr:
            self._functions.setdefault("learning_rate", algorithm.args.falling("learning_rate"))
        self._values = vars(algorithm.context.now)
        for name, function in self._functions.items():
            self._values[name] = torch.zeros((), device=algorithm.device)
            number_of(name, function, 0)

    def set(self, frames: int) -> None:
        """Sets the values after so many frames."""
        for name, function in self._functions.items():
            if name != "learning_rate":
                self._values[name].fill_(number_of(name, function, frames))

    def learning_rate(self, frames: int) -> float | None:
        """The optimizer's learning rate after so many frames; None: it does not change."""
        function = self._functions.get("learning_rate")
        return None if function is None else number_of("learning_rate", function, frames)
