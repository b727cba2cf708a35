"""Compiles games for a GPU in a thread, while their envs are interpreted."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from tqdm import tqdm

from cule import translation
from cule.processes.forks import after_fork_in_child
from cule.rom import Game

# The arguments of translation.translate.
Key = tuple[Game, str, bool, bool, bool]
# Who waits longer than this for a kernel is told so by a line on stderr. Loading a kernel from the
# cache takes less time.
SECONDS_BEFORE_A_LINE = 1.0


class Translating:
    """A kernel that a thread compiles.

    The thread keeps no env alive and does not use a GPU: the envs load the kernel. A process that
    ends waits for the thread, so that the next process finds the kernel in the cache.

    Args:
        game: what is compiled.
        make: compiles it; returns None if there is no need.
    """

    def __init__(self, game: Game, make: Callable[[], translation.Translation | None]):
        self.game = game
        self._done = threading.Event()
        self._made: translation.Translation | None = None
        self._problem: BaseException | None = None
        threading.Thread(
            target=self._make, args=(make,), name=f"cule translates {game.name}"
        ).start()

    def _make(self, make: Callable[[], translation.Translation | None]) -> None:
        try:
            self._made = make()
        except BaseException as problem:  # `result` raises it
            self._problem = problem
        finally:
            self._done.set()

    @property
    def done(self) -> bool:
        """Whether `result` returns at once."""
        return self._done.is_set()

    def wait(self, timeout: float) -> bool:
        """Waits for the thread, for so many seconds at most; returns `done`."""
        return self._done.wait(timeout)

    def result(self, progress: bool = False) -> translation.Translation | None:
        """Waits for the thread, and returns what `make` returned there.

        Args:
            progress: whether to show a line that says so, if it takes seconds and stderr is a
                terminal.

        Raises:
            OSError: there is no run-time compiler.
            RuntimeError: the game does not compile.
        """
        if not self._done.wait(SECONDS_BEFORE_A_LINE):
            said = f"compiling {self.game.name} for the GPU, which takes seconds, once"
            with tqdm(
                desc=said, bar_format="{desc}", leave=False, disable=None if progress else True
            ):
                self._done.wait()
        if self._problem is not None:
            raise self._problem
        return self._made


_lock = threading.Lock()
_being_made: dict[Key, Translating] = {}


def _translated(key: Key) -> translation.Translation:
    try:
        return translation.translate(*key)
    finally:
        with _lock:
            _being_made.pop(key, None)


def translating(
    game: Game, architecture: str, in_step: bool, at_first: bool, sound: bool = False
) -> Translating:
    """The game's kernel (see translation.translate), which a thread compiles for all envs."""
    key = (game, architecture, in_step, at_first, sound)
    with _lock:
        if key not in _being_made:
            _being_made[key] = Translating(game, functools.partial(_translated, key))
        return _being_made[key]


def _after_fork_in_child() -> None:
    """Forgets the threads, which a forked child does not have."""
    global _lock
    _lock = threading.Lock()
    _being_made.clear()


after_fork_in_child(_after_fork_in_child)
