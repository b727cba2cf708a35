"""Stand-ins for a compiler and for a GPU's backend: a test decides when a kernel is ready."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

import cule
from cule import translation
from cule.console import rom_of
from cule.engine import changeover, engine
from cule.translation import background

SECONDS = 60  # at most, that a test waits for a thread


class Compiler:
    """Stands in for translation.translate: it compiles when the test lets it.

    Attributes:
        begun: what it was given.
        let: set when it may go on.
        problem: what it raises, if anything.
        first: what a first kernel is called, if there are any.
        let_whole: the same as `let`, for the kernels of all blocks, where there are first ones.
    """

    def __init__(self) -> None:
        self.begun: list[tuple[str, str, bool, bool]] = []
        self.let, self.let_whole = threading.Event(), threading.Event()
        self.problem: BaseException | None = None
        self.first: bytes | None = None

    def __call__(
        self, game: Any, architecture: str, in_step: bool, at_first: bool, sound: bool
    ) -> translation.Translation:
        assert not sound
        self.begun.append((game.name, architecture, in_step, at_first))
        whole = self.first is None or not at_first
        assert (self.let_whole if self.first and whole else self.let).wait(SECONDS)
        if self.problem:
            raise self.problem
        operations = np.full((len(rom_of(game)[0]) + 1, 2), 7 if whole else 3, np.uint32)
        cubin = b"a kernel" if whole else self.first
        return translation.Translation(cubin, operations, whole, translation.profile(game))

    def finish(self) -> None:
        """Lets everything compile, and returns when nothing is being compiled any more."""
        self.let.set()
        self.let_whole.set()
        join_threads()
        assert not background._being_made


def stand_in(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """Lets envs on the CPU be compiled by a stand-in until the test ends."""
    made = Compiler()
    monkeypatch.setattr(translation, "translate", made)
    monkeypatch.setattr(changeover, "architecture_of", lambda _: "sm_90")
    monkeypatch.setattr(engine, "keep_through_forks", LoadingBackend)
    monkeypatch.setattr(engine, "wants_translation", lambda asked, *_: asked is not False)
    return made


def join_threads() -> None:
    """Waits for the threads that compile."""
    for thread in threading.enumerate():
        if thread.name.startswith("cule translates"):
            thread.join(SECONDS)


def marked_ops(env: cule.AtariEnv) -> list[int]:
    """The marked operations of all loaded kernels.

    The stand-ins fill each kernel's with one number.
    """
    found = []
    for address in env.engine.backend.marked_ops:
        (tensor,) = (t for t in env.engine.tensors.values() if t.data_ptr() == address)
        (number,) = tensor.view(torch.int32).unique().tolist()
        found.append(number)
    return found


class LoadingBackend:
    """The CPU's backend, which also takes kernels and notes them."""

    def __init__(self, backend: Any):
        self.backend, self.loaded = backend, []
        self.marked_ops: list[int] = []
        self.problem: BaseException | None = None

    def load_translation(self, cubin: bytes, marked_ops: int) -> None:
        problem, self.problem = self.problem, None
        if problem:
            raise problem
        self.loaded.append(cubin)
        self.marked_ops.append(marked_ops)

    def plays_in_step(self, num_envs: int) -> bool:
        return num_envs > 10

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)
