"""Signals that stop a training."""

from __future__ import annotations

import signal
import time
from typing import Any

# A launcher may repeat a signal that its processes have had from the terminal, too.
PATIENCE_SECONDS = 5.0


class Stopper:
    """While a `with` block runs, SIGTERM and SIGINT only set `wanted`.

    One that comes more than PATIENCE_SECONDS after the first raises KeyboardInterrupt: the work
    that looks at `wanted` may take hours, and what is on the disk survives any end.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self.wanted = False
        self._first: float | None = None

    def _note(self, *_: Any) -> None:
        self.wanted, now = True, time.monotonic()
        if self._first is None:
            self._first = now
        elif now - self._first > PATIENCE_SECONDS:
            raise KeyboardInterrupt

    def __enter__(self) -> Stopper:
        self._before = {number: signal.signal(number, self._note) for number in self.SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
