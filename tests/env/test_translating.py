"""Envs play interpreted while their game is compiled, and change over between two steps.

On the CPU: the compiler and the loader are stand-ins, so that a test decides when a kernel is
ready.
"""

from __future__ import annotations

import io
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import error
from rollouts import outputs, same
from stand_in_compiler import SECONDS, Compiler, join_threads, marked_ops, stand_in

import cule
from cule import translation
from cule.console import rom_of
from cule.engine import changeover
from cule.translation import background


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    made = stand_in(monkeypatch)
    yield made
    made.problem = None
    made.finish()


def make(num_envs: int = 2, **options: Any) -> cule.AtariEnv:
    return cule.AtariEnv(
        "pong", num_envs, device="cpu", num_threads=1, reset_pool_size=1, **options
    )


def test_env_plays_at_once_and_changes_over_between_two_steps(compiler: Compiler) -> None:
    env, plain = make(), make(translate=False)
    backend = env.engine.backend
    assert torch.equal(env.reset(seed=1)[0], plain.reset(seed=1)[0])
    for step in range(6):
        if step == 3:
            assert not env.translated
            assert backend.loaded == []
            compiler.finish()
            assert not env.translated, "a step does it"
        actions = [step % 6, 2]
        assert same(outputs(env, env.step(actions)), outputs(plain, plain.step(actions))), step
        assert env.translated == (step >= 3)
    assert backend.loaded == [b"a kernel"]
    assert marked_ops(env) == [7]
    assert compiler.begun == [("pong", "sm_90", False, True)]
    assert not plain.translated


def test_first_kernel_gives_way_to_the_whole_one(compiler: Compiler) -> None:
    """Each kernel keeps its marked operations, as a graph may have captured it."""
    compiler.first = b"a first kernel"
    env, plain = make(), make(translate=False)
    backend = env.engine.backend
    assert torch.equal(env.reset(seed=1)[0], plain.reset(seed=1)[0])
    for step in range(9):
        if step == 3:
            compiler.let.set()
            join_threads()
        if step == 6:
            compiler.finish()
        actions = [step % 6, 2]
        assert same(outputs(env, env.step(actions)), outputs(plain, plain.step(actions))), step
        assert env.translated == (step >= 3)
        assert len(backend.loaded) == step // 3
    assert backend.loaded == [b"a first kernel", b"a kernel"]
    assert marked_ops(env) == [3, 7]
    assert [at_first for *_, at_first in compiler.begun] == [True, False]


def test_waiting_is_for_the_whole_kernel(compiler: Compiler) -> None:
    compiler.first = b"a first kernel"
    env = make()
    compiler.let.set()
    threading.Timer(0.3, compiler.let_whole.set).start()
    assert env.wait_until_translated()
    assert env.engine.backend.loaded == [b"a first kernel", b"a kernel"]
    compiler.begun.clear()
    assert make(translate=True).engine.backend.loaded == [b"a kernel"]
    assert [at_first for *_, at_first in compiler.begun] == [False], "who waits waits for that only"


def test_a_kernel_with_what_envs_execute_replaces_the_whole_one(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool, int]] = []
    let = threading.Event()
    needed = True

    def translate_again(
        game: Any, architecture: str, in_step: bool, played: np.ndarray, states: list[Any],
        sound: bool,
    ) -> translation.Translation | None:  # fmt: skip
        assert not sound
        asked.append((architecture, in_step, len(states)))
        assert np.array_equal(played, translation.profile(game))
        assert let.wait(SECONDS)
        operations = np.full((len(rom_of(game)[0]) + 1, 2), 9, np.uint32)
        return translation.Translation(b"another", operations, True, played) if needed else None

    monkeypatch.setattr(changeover, "translate_again", translate_again)
    env, plain = make(3), make(3, translate=False)
    backend = env.engine.backend
    assert not env.translate_again(), "before the first reset, and the first kernel"
    compiler.finish()
    assert env.translate_again(), "it loads the first kernel"
    assert torch.equal(env.reset(seed=1)[0], plain.reset(seed=1)[0])
    for step in range(9):
        if step == 3:
            assert not env.translate_again() and not env.translate_again()
            let.set()
            join_threads()
            assert backend.loaded == [b"a kernel"]
        actions = [step % 6, 2, 1]
        assert same(outputs(env, env.step(actions)), outputs(plain, plain.step(actions))), step
        assert len(backend.loaded) == 1 + (step >= 3)
    assert asked == [("sm_90", False, 3)]
    assert (backend.loaded, marked_ops(env)) == ([b"a kernel", b"another"], [7, 9])
    assert env.translate_again(look=False), "a step has loaded it since the last call"
    assert not env.translate_again(look=False) and len(asked) == 1
    needed = False
    assert not env.translate_again() and env.wait_until_translated()
    assert len(asked) == 2 and len(backend.loaded) == 2
    needed = True
    assert not env.translate_again()
    join_threads()
    assert env.translate_again(look=False), "a call loads it, too"
    assert marked_ops(env) == [7, 9, 9] and len(set(backend.marked_ops)) == 3
    assert not plain.translate_again()


def test_a_kernel_that_cannot_be_compiled_again_is_told_once(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def translate_again(*_: Any) -> None:
        raise RuntimeError("too much for this compiler")

    monkeypatch.setattr(changeover, "translate_again", translate_again)
    env = make()
    env.reset(seed=1)
    compiler.finish()
    env.step([0, 0])
    env.translate_again()
    join_threads()
    with pytest.warns(UserWarning, match="slower than they could: too much for this compiler"):
        env.step([0, 0])
    assert env.translated and env.engine.backend.loaded == [b"a kernel"]
    assert not env.translate_again()
    assert env.wait_until_translated(), "nothing is tried any more"
    env.step([0, 0])


def test_wait_until_translated_waits_and_changes_over(compiler: Compiler) -> None:
    env = make()
    threading.Timer(0.2, compiler.let.set).start()
    assert env.wait_until_translated()
    assert env.translated
    assert env.wait_until_translated()
    assert env.engine.backend.loaded == [b"a kernel"]
    env.close()
    assert not env.translated
    with pytest.raises(error.ClosedEnvironmentError, match="wait_until_translated"):
        env.wait_until_translated()


def test_waiting_with_a_timeout_leaves_the_rest_for_later(compiler: Compiler) -> None:
    compiler.first = b"a first kernel"
    env = make()
    begun = time.monotonic()
    assert not env.wait_until_translated(timeout=0.2)
    assert time.monotonic() - begun >= 0.2
    assert not env.wait_until_translated(0), "which only looks"
    compiler.let.set()
    assert env.wait_until_translated(timeout=0.5)
    assert env.engine.backend.loaded == [b"a first kernel"]
    assert not env.translate_again(look=False), "what the call has loaded"
    compiler.finish()
    assert env.wait_until_translated(timeout=SECONDS)
    assert env.engine.backend.loaded == [b"a first kernel", b"a kernel"]
    for wrong in (-1, "1", float("nan")):
        with pytest.raises((TypeError, ValueError), match="expected timeout to be"):
            env.wait_until_translated(timeout=wrong)


def test_env_that_is_not_translated_does_not_wait() -> None:
    env = make()
    assert not env.wait_until_translated()
    assert not env.translated


def test_envs_of_a_game_share_what_is_being_compiled(compiler: Compiler) -> None:
    envs = [make(), make(), make(num_envs=11)]
    compiler.finish()
    assert compiler.begun == [("pong", "sm_90", False, True), ("pong", "sm_90", True, True)]
    assert all(env.wait_until_translated() for env in envs)
    assert all(env.engine.backend.loaded == [b"a kernel"] for env in envs)
    assert make().wait_until_translated()
    assert len(compiler.begun) == 3, "which finds it kept on the disk"


@pytest.mark.parametrize(
    "problem", [OSError("there is no compiler"), RuntimeError("it does not compile")], ids=str
)
@pytest.mark.parametrize("waits", [True, False])
def test_game_that_does_not_compile_is_interpreted_with_one_warning(
    problem: Exception, waits: bool, compiler: Compiler
) -> None:
    compiler.problem = problem
    env = make()
    env.reset(seed=0)
    env.step([0, 0])
    compiler.finish()
    with pytest.warns(
        UserWarning, match=f"envs run several times slower than they could: {problem}"
    ) as warned:
        if waits:
            assert not env.wait_until_translated()
        else:
            env.step([0, 0])
    assert [warning.filename for warning in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.step([0, 0])
        assert not env.wait_until_translated()
    assert not env.translated


def test_kernel_that_does_not_load_is_left(compiler: Compiler) -> None:
    env = make()
    env.reset(seed=0)
    env.engine.backend.problem = RuntimeError("linking a translated ROM failed")
    compiler.finish()
    with pytest.warns(UserWarning, match="linking a translated ROM failed"):
        env.step([0, 0])
    env.step([0, 0])
    assert not env.translated


def test_interrupted_change_is_made_at_the_next_step(compiler: Compiler) -> None:
    env = make()
    env.reset(seed=0)
    env.engine.backend.problem = KeyboardInterrupt()
    compiler.finish()
    with pytest.raises(KeyboardInterrupt):
        env.step([0, 0])
    assert not env.translated
    env.step([0, 0])
    assert env.translated


def test_translate_true_waits_and_says_why_it_cannot_be(compiler: Compiler) -> None:
    threading.Timer(0.2, compiler.let.set).start()
    assert make(translate=True).translated
    compiler.problem = OSError("there is no compiler")
    with pytest.raises(ValueError, match=r"translate=True was asked for, but there is no compiler"):
        make(translate=True)


def test_nothing_changes_while_a_graph_is_captured(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make()
    env.reset(seed=0)
    compiler.finish()
    with monkeypatch.context() as context:
        context.setattr(changeover, "is_captured", lambda _: True)
        env.step([0, 0])
        assert not env.translated
        with pytest.raises(
            RuntimeError,
            match=r"expected wait_until_translated\(\) before a CUDA graph is captured",
        ):
            env.wait_until_translated()
    env.step([0, 0])
    assert env.translated


def test_env_that_is_closed_meanwhile_changes_nothing(compiler: Compiler) -> None:
    env = make()
    env.reset(seed=0)
    backend = env.engine.backend
    env.close()
    compiler.finish()
    assert backend.loaded == []


@pytest.mark.parametrize("progress", [True, False])
def test_waiting_is_said_on_a_terminal(
    progress: bool, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(background, "SECONDS_BEFORE_A_LINE", 0.05)
    monkeypatch.setattr(sys, "stderr", Terminal())
    env = make(progress=progress)
    time.sleep(0.1)
    assert sys.stderr.getvalue() == "", "who does not wait is not told"
    threading.Timer(0.3, compiler.let.set).start()
    env.wait_until_translated()
    assert (
        "compiling pong for the GPU, which takes seconds, once" in sys.stderr.getvalue()
    ) == progress
