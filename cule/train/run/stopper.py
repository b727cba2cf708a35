"""Signals that stop a training."""

from __future__ import annotations

import signal
from typing import Any


class Stopper:
    """While a `with` block runs, SIGTERM and SIGINT only set `wanted`."""

    SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self.wanted = False

    def _note(self, *_: Any) -> None:
        self.wanted = True

    def __enter__(self) -> Stopper:
        self._before = {number: signal.signal(number, self._note) for number in self.SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
