"""Games that are compiled for a GPU by a thread, while their envs play on interpreted."""

from __future__ import annotations

import os
import threading

import numpy as np
from tqdm import tqdm

from cule import translation
from cule.rom import Game

# What a kernel is made for: the game, the GPU's architecture, and whether its warps wait for each other.
Key = tuple[Game, str, bool]
# A line says so where somebody has waited for a kernel so long: one that has been kept is there before.
SECONDS_BEFORE_A_LINE = 1.0


class Translating:
    """A kernel that a thread makes, for all envs of this process that want it meanwhile.

    The thread keeps no env alive, and touches no GPU: whoever wants the kernel loads it. At the
    process's end it is waited for, so that what it has compiled is kept for the next one.
    """

    def __init__(self, key: Key):
        self.game = key[0]
        self._done = threading.Event()
        self._made: tuple[bytes, np.ndarray] | None = None
        self._problem: BaseException | None = None
        threading.Thread(target=self._make, args=(key,), name=f"cule translates {self.game.name}").start()

    def _make(self, key: Key) -> None:
        game, architecture, in_step = key
        try:
            self._made = translation.translate(game, architecture, in_step)
        except BaseException as problem:  # whoever waits for it is told
            self._problem = problem
        finally:
            with _lock:
                _being_made.pop(key, None)
            self._done.set()

    @property
    def done(self) -> bool:
        """Whether `result` returns at once."""
        return self._done.is_set()

    def result(self, progress: bool = False) -> tuple[bytes, np.ndarray]:
        """The kernel and the marked operations, as translation.translate gives them, when they are made.

        Args:
            progress: whether a line says so where that takes seconds and stderr is a terminal.

        Raises:
            OSError: there is no run-time compiler.
            RuntimeError: it does not compile.
        """
        if not self._done.wait(SECONDS_BEFORE_A_LINE):
            said = f"compiling {self.game.name} for the GPU: some seconds, this once"
            with tqdm(desc=said, bar_format="{desc}", leave=False, disable=None if progress else True):
                self._done.wait()
        if self._problem is not None:
            raise self._problem
        assert self._made is not None
        return self._made


_lock = threading.Lock()
_being_made: dict[Key, Translating] = {}


def translating(game: Game, architecture: str, in_step: bool) -> Translating:
    """The game's kernel, which is being made from now on, or has been since another env wanted it."""
    key = (game, architecture, in_step)
    with _lock:
        if key not in _being_made:
            _being_made[key] = Translating(key)
        return _being_made[key]


def _after_fork_in_child() -> None:
    """A forked child has none of the threads."""
    global _lock
    _lock = threading.Lock()
    _being_made.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
