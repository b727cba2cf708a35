"""Steps in two halves: what they return, what may be called in between, and what goes wrong."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from gymnasium import error
from rollouts import actions_of, digest, make, outputs, same
from started_envs import started

import cule
from tests.support import warm

GAMES = ["breakout", "pong", "space_invaders"]
HALVES = {
    "step_async and step_wait": ("step_async", "step_wait"),
    "ale-py's names": ("send", "recv"),
}


def digest_of_halves(
    env: cule.AtariEnv, actions: torch.Tensor, halves: tuple[str, str] = ("step_async", "step_wait")
) -> list[torch.Tensor]:
    first, second = halves
    found = []
    for row in actions:
        getattr(env, first)(row)
        found += outputs(env, getattr(env, second)())
    return found


@pytest.mark.parametrize(
    "options",
    [
        {}, {"num_threads": 2}, {"num_threads": 3, "autoreset_mode": "SameStep"},
        {"autoreset_mode": "Disabled", "repeat_action_probability": 0.25},
        {"obs_type": "ram", "num_threads": 2},
    ],
    ids=str,
)  # fmt: skip
def test_halves_of_a_step_give_what_a_step_gives(device: str, options: dict[str, Any]) -> None:
    options = {"max_num_frames_per_episode": 120} | options
    whole, halves = (make(GAMES, 6, device, **options) for _ in range(2))
    for env in (whole, halves):
        env.reset(seed=4)
    actions = actions_of(whole, 60)
    assert same(digest(whole, actions), digest_of_halves(halves, actions))
    # In any order.
    actions = actions_of(whole, 6, seed=1)
    mixed = [
        digest(halves, actions[:2]), digest_of_halves(halves, actions[2:4], ("send", "recv")),
        digest_of_halves(halves, actions[4:5]), digest(halves, actions[5:]),
    ]  # fmt: skip
    assert same(digest(whole, actions), [value for part in mixed for value in part])


def test_halves_take_both_players_and_continuous_actions() -> None:
    for options, count in (({}, (2,)), ({"continuous": True}, (2, 3))):
        whole, halves = (make("freeway", 2, mode=2, **options) for _ in range(2))
        for env in (whole, halves):
            env.reset(seed=0)
        actions = torch.ones(count, dtype=torch.float32 if options else torch.int64)
        for step in range(20):
            others = torch.tensor([step % 18, 3])
            halves.step_async(actions, player_b_actions=others)
            assert same(
                outputs(whole, whole.step(actions, others)), outputs(halves, halves.step_wait())
            )


@pytest.mark.parametrize("num_threads", [1, 2])
def test_step_is_played_while_the_caller_does_something_else(num_threads: int) -> None:
    """The step is done before anybody waits for it; also with one thread."""
    env = make("breakout", 2, num_threads=num_threads)
    env.reset(seed=0)
    frames = env.engine.tensors["frame_numbers"]
    for _ in range(3):
        before = frames.clone()
        env.step_async([0, 1])
        while not bool((frames == before + 4).all()):
            time.sleep(0)
        assert bool((env.step_wait()[4]["frame_number"] == before + 4).all())


STATE = started().clone_state()
CALLS: dict[str, Callable[[cule.AtariEnv], Any]] = {
    "step": lambda env: env.step([0, 0]),
    "step_async": lambda env: env.step_async([0, 0]),
    "send": lambda env: env.send([0, 0]),
    "reset": lambda env: env.reset(),
    "clone_state": lambda env: env.clone_state(),
    "restore_state": lambda env: env.restore_state(STATE),
    "copy_state": lambda env: env.copy_state([0], [1]),
    "get_ram": lambda env: env.get_ram(),
    "get_screen": lambda env: env.get_screen(),
    "get_screen_rgb": lambda env: env.get_screen_rgb(),
    "get_screen_grayscale": lambda env: env.get_screen_grayscale(),
    "render": lambda env: env.render(),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_while_a_step_is_in_flight_is_refused_and_does_nothing(device: str, name: str) -> None:
    env, replay = started(device=device), started(device=device)
    env.step_async([1, 1])
    with pytest.raises(
        error.AlreadyPendingCallError,
        match=rf"expected step_wait\(\) after step_async\(\), got {name}\(\) while a step is in fl",
    ):
        CALLS[name](env)
    assert same(outputs(env, env.step_wait()), outputs(replay, replay.step([1, 1])))
    with pytest.raises(
        error.NoAsyncCallError, match=r"expected step_async\(\) before step_wait\(\)"
    ):
        env.step_wait()
    CALLS[name](env)


def test_wrong_actions_start_nothing() -> None:
    env, replay = started(), started()
    with pytest.raises(ValueError, match="expected actions from 0 to 3"):
        env.step_async([0, 9])
    with pytest.raises(error.NoAsyncCallError):
        env.recv()
    fresh = make()
    with pytest.raises(error.ResetNeeded):
        fresh.step_async([0] * 4)
    assert same(outputs(env, env.step([1, 2])), outputs(replay, replay.step([1, 2])))


def test_close_with_a_step_in_flight(device: str) -> None:
    for count in range(20):
        env = started(num_envs=1 + count % 4, device=device)
        env.step_async([0] * env.num_envs)
        env.close()
        with pytest.raises(
            error.ClosedEnvironmentError, match=r"got step_wait\(\) after close\(\)"
        ):
            env.step_wait()


def run(code: str) -> subprocess.CompletedProcess[str]:
    return warm.run(["-c", textwrap.dedent(code)])


def test_process_may_end_drop_or_fork_with_a_step_in_flight() -> None:
    done = run("""
        import os, cule
        def sent(num_threads):
            env = cule.AtariEnv("pong", 8, device="cpu", num_threads=num_threads, reset_pool_size=1)
            env.reset(seed=0)
            env.step_async([0] * 8)
            return env
        for threads in (1, 2):
            sent(threads)  # is dropped
        env = sent(2)
        child = os.fork()
        if not child:
            try:
                env.step_wait()
            except RuntimeError as problem:
                print(str(problem).partition(" (pid")[0], flush=True)
            env.close()
            os._exit(0)
        print("child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        env.step_wait()
        left = sent(1), sent(2)
        print("the end")
    """)
    assert (done.returncode, done.stdout.splitlines()) == (0, [
        "expected step_wait() in the process that made the env", "child ended with 0", "the end",
    ]), done.stderr  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
def test_failure_in_a_thread_is_raised_where_the_caller_waits() -> None:
    """A thread needs half a megabyte for wide observations, and the process may not have it."""
    done = run("""
        import ctypes, resource, numpy as np, torch, cule
        from cule.env.flights import Flights

        def limit(more):
            ctypes.CDLL(None).malloc_trim(0)
            size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + more if more else -1, -1))

        def attempt(call):
            try:
                call()
                print("done")
            except MemoryError as problem:
                print("MemoryError", env.engine.in_flight)

        torch.set_num_threads(1)
        env = cule.AtariEnv("pong", 1, device="cpu", num_threads=1, img_height=1, img_width=4096,
                            grayscale=False, stack_num=1, reset_pool_size=1)
        flights, all_envs, backend = Flights(env), slice(0, 1), env.engine.backend
        # Nothing flies, but the thread is there.
        backend.wait_for(backend.start(env.engine.batch, np.zeros(0, np.int32), True, None, False))
        limit(200_000)
        attempt(lambda: flights.wait(flights.reset(all_envs, 0)))
        flights.step(all_envs, [0], singly=True)
        attempt(lambda: flights.take(1))
        print(flights.take(1))  # it was played, and can be received
        env.step_async([0])
        attempt(env.step_wait)
        attempt(lambda: env.step([0]))
        limit(0)
        attempt(lambda: env.step([0]))
    """)
    assert done.stdout.splitlines() == [
        "MemoryError False", "MemoryError True", "[0]", "MemoryError False", "MemoryError False",
        "done",
    ], done.stderr  # fmt: skip
