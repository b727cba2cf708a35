"""An algorithm's schedules: numbers that depend on the frames so far."""

from __future__ import annotations

from typing import Any

import torch

from cule.train.algorithm import Algorithm
from cule.train.lowering.method_checks import check_schedules, number_of


class Schedules:
    """The current values of an algorithm's schedules, as tensors that captured steps read.

    Args:
        algorithm: the algorithm; its `now` gets the tensors, () float32 each.

    Raises:
        ValueError: `schedules` does not return functions by name.
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
