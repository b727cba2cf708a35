"""Only one thread at a time may use an env; calls of the others are refused and have no effect."""

from __future__ import annotations

import random
import re
import signal
import sys
import textwrap
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium import error

import cule
from cule.single_env import SingleAtariEnv
from tests.support import warm

ENVS = 4


def started(**options: Any) -> cule.AtariEnv:
    settings = {
        "device": "cpu",
        "num_threads": 1,
        "reset_pool_size": 2,
        "output": "numpy",
    } | options
    env = cule.AtariEnv("breakout", ENVS, **settings)
    env.reset(seed=0)
    return env


def make_single() -> SingleAtariEnv:
    env = SingleAtariEnv("breakout", obs_type="grayscale", frameskip=(1, 4), reset_pool_size=2)
    env.reset(seed=0)
    return env


def contents(state: cule.State) -> bytes:
    return b"".join(part.contiguous().numpy().tobytes() for part in state.tensors.values())


@pytest.fixture(autouse=True)
def quick_turns() -> Iterator[None]:
    """Makes Python's threads take turns fifty times as often as by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def together(*jobs: Callable[[], Any]) -> None:
    """Runs each call in a thread of its own. Raises the error of one of them."""
    problems: list[BaseException] = []

    def guarded(job: Callable[[], Any]) -> None:
        try:
            job()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def attempt(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of the call; None if it was refused, as another thread is in the env."""
    try:
        return call(*arguments)
    except RuntimeError as problem:
        wanted, got = "expected one thread at a time in an env", f"got {call.__name__}()"
        assert str(problem) == f"{wanted}, {got} while another thread is in one"
        return None
    finally:
        time.sleep(0)  # the other's turn


@pytest.mark.parametrize("steps", [300, pytest.param(5_000, marks=pytest.mark.slow)])
def test_steps_of_two_threads_play_the_actions_of_the_accepted_calls(steps: int) -> None:
    env, order, met = started(), [], set()
    accepted: dict[int, deque[Any]] = {}
    inner = env.engine.step

    def step() -> None:
        inner()
        order.append(threading.get_ident())

    env.engine.step = step  # type: ignore[method-assign]

    def play(seed: int) -> None:
        numbers, mine = (
            np.random.default_rng(seed),
            accepted.setdefault(threading.get_ident(), deque()),
        )
        while len(order) < steps:
            actions = numbers.integers(0, 4, ENVS)
            results = attempt(env.step, actions)
            if results is None:
                met.add(seed)
            else:
                mine.append((actions, results))

    together(lambda: play(0), lambda: play(1))
    assert met, "no call was refused"
    replay = started()
    for thread in order:
        actions, results = accepted[thread].popleft()
        for got, expected in zip(results[:4], replay.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(got, expected)
    assert not any(accepted.values())
    assert contents(env.clone_state()) == contents(replay.clone_state())


def test_steps_of_two_threads_in_the_single_env_are_those_of_the_accepted_calls() -> None:
    """A refused call draws no frameskip: alone, the accepted calls play the same in their order."""
    console, accepted, met = make_single(), [], set()

    def play(seed: int) -> None:
        while len(accepted) < 300:
            result = attempt(console.step, seed + 2)
            if result is None:
                met.add(seed)
            else:
                accepted.append((result[4]["frame_number"], seed + 2, result))

    together(lambda: play(0), lambda: play(1))
    assert met, "no call was refused"
    replay = make_single()
    for _, action, result in sorted(accepted, key=lambda one: one[0]):
        again = replay.step(action)
        np.testing.assert_array_equal(again[0], result[0])
        assert again[1:] == result[1:]


@pytest.mark.parametrize("snapshots", [40, pytest.param(1_000, marks=pytest.mark.slow)])
def test_states_cloned_beside_steps_are_whole(snapshots: int) -> None:
    env, taken, steps, delays = started(), [], 0, random.Random(0)

    def play() -> None:
        nonlocal steps
        while len(taken) < snapshots:
            steps += attempt(env.step, [steps % 4] * ENVS) is not None
            time.sleep(delays.uniform(0, 1e-3))

    def look() -> None:
        while len(taken) < snapshots:
            state = attempt(env.clone_state)
            if state is not None:
                taken.append(hash(contents(state)))

    together(play, look)
    replay = started()
    whole = {hash(contents(replay.clone_state()))}
    for step in range(steps):
        replay.step([step % 4] * ENVS)
        whole.add(hash(contents(replay.clone_state())))
    assert whole.issuperset(taken)
    assert len(set(taken)) > 1


@pytest.mark.parametrize("restores", [40, pytest.param(1_000, marks=pytest.mark.slow)])
def test_states_restored_beside_steps_are_whole(restores: int) -> None:
    env, counts, seen = started(), [0, 0], []
    first = env.clone_state()

    def play() -> None:
        while counts[0] < restores:
            results = attempt(env.step, [1] * ENVS)
            if results is not None:
                counts[1] += 1
                seen.append((results[4]["frame_number"].tobytes(), results[0].tobytes()))

    def restore_state() -> None:
        env.restore_state(first)
        counts[0] += 1

    def restore() -> None:
        while counts[0] < restores:
            attempt(restore_state)

    together(play, restore)
    replay, possible = started(), set()
    for _ in range(counts[1]):
        observations, _, _, _, info = replay.step([1] * ENVS)
        possible.add((info["frame_number"].tobytes(), observations.tobytes()))
    assert seen
    assert possible.issuperset(seen)


STATE = started().clone_state()
CALLS = {
    "step": lambda env: env.step([3] * ENVS),
    "send": lambda env: env.send([3] * ENVS),
    "recv": lambda env: env.recv(),
    "step_async": lambda env: env.step_async([3] * ENVS),
    "step_wait": lambda env: env.step_wait(),
    "reset": lambda env: env.reset(seed=7),
    "clone_state": lambda env: env.clone_state(),
    "restore_state": lambda env: env.restore_state(STATE),
    "copy_state": lambda env: env.copy_state([0], [1]),
    "get_ram": lambda env: env.get_ram(),
    "get_screen": lambda env: env.get_screen(),
    "get_screen_rgb": lambda env: env.get_screen_rgb(),
    "get_screen_grayscale": lambda env: env.get_screen_grayscale(),
    "render": lambda env: env.render(),
    "close": lambda env: env.close(),
}


def with_inside(env: cule.AtariEnv, happening: Callable[[], Any]) -> None:
    """Makes each of the env's steps call `happening`, right before the consoles play."""
    inner = env.engine.step

    def step() -> None:
        happening()
        inner()

    env.engine.step = step  # type: ignore[method-assign]


@pytest.mark.parametrize("name", CALLS)
def test_call_beside_a_step_of_another_thread_is_refused_and_does_nothing(name: str) -> None:
    env, replay = started(), started()
    entered, left = threading.Event(), threading.Event()
    with_inside(env, lambda: (entered.set(), left.wait()))
    results: list[Any] = []
    stepping = threading.Thread(target=lambda: results.append(env.step([1] * ENVS)))
    stepping.start()
    entered.wait()
    try:
        with pytest.raises(
            RuntimeError, match=rf"expected one thread at a time in an env, got {name}\(\) while"
        ):
            CALLS[name](env)
    finally:
        left.set()
        stepping.join()
    np.testing.assert_array_equal(results[0][0], replay.step([1] * ENVS)[0])
    assert contents(env.clone_state()) == contents(replay.clone_state())


def in_handler(call: Callable[[], Any]) -> list[Any]:
    """Calls it in a signal handler, and returns its result or error."""
    results: list[Any] = []

    def handle(*_: Any) -> None:
        try:
            results.append(call())
        except Exception as problem:
            results.append(problem)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    return results


@pytest.mark.parametrize("name", CALLS)
def test_handler_of_a_signal_may_look_into_an_env_that_steps_but_not_change_it(name: str) -> None:
    env, replay, found = started(), started(), []
    with_inside(env, lambda: found.extend(in_handler(lambda: CALLS[name](env))))
    if name == "close":
        with pytest.raises(error.ClosedEnvironmentError):
            env.step([1] * ENVS)
        return
    env.step([1] * ENVS)
    replay.step([1] * ENVS)
    if name in (
        "step",
        "send",
        "recv",
        "step_async",
        "step_wait",
        "reset",
        "restore_state",
        "copy_state",
    ):
        sentence = (
            rf"expected step\(\) to return before the env is changed, got {name}\(\) inside it, .*"
        )
        assert re.fullmatch(sentence, str(found[0]))
    else:
        assert not isinstance(found[0], Exception)
    assert contents(env.clone_state()) == contents(replay.clone_state())


def test_forked_child_is_told_of_the_fork_though_a_thread_was_in_the_env() -> None:
    code = """
        import os, threading, cule
        env = cule.AtariEnv("pong", 2, device="cpu", num_threads=1, reset_pool_size=1)
        env.reset(seed=0)
        entered, left, inner = threading.Event(), threading.Event(), env.engine.step
        env.engine.step = lambda: (entered.set(), left.wait(), inner())
        thread = threading.Thread(target=lambda: env.step([0, 0]))
        thread.start()
        entered.wait()
        child = os.fork()
        if not child:
            try:
                env.step([0, 0])
            except RuntimeError as problem:
                print(str(problem).partition(" (pid")[0], flush=True)
            env.close()
            os._exit(env.closed)
        print("child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        left.set()
        thread.join()
        env.step([0, 0])
        print("parent played")
    """
    done = warm.run(["-c", textwrap.dedent(code)])
    assert done.stdout.splitlines() == [
        "expected step() in the process that made the env", "child ended with 1", "parent played",
    ], done.stderr  # fmt: skip
