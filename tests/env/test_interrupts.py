"""An interrupt at any place in any call leaves an env intact and usable."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import error
from interrupts import (
    ENVS,
    RIGHT,
    STILL,
    STRIDES,
    contents,
    interrupt_at,
    interrupted_everywhere,
    started,
)

import cule
from cule.adapters import envpool
from cule.env.flights import Flights

OTHER_OPTIONS = ({"output": "numpy"}, {"autoreset_mode": "SameStep"}, {"continuous": True})


@pytest.mark.parametrize(
    ("options", "stride"),
    [
        ({}, 1), *((options, 5) for options in OTHER_OPTIONS),
        *(pytest.param(options, 1, marks=pytest.mark.slow) for options in OTHER_OPTIONS),
    ],
)  # fmt: skip
def test_step_interrupted_before_any_byte_code_is_played_whole_or_not_at_all(
    options: dict[str, Any], stride: int
) -> None:
    env, twin = started(**options), started(**options)
    actions = torch.tensor([[1.0, 0.5, 0.0]] * ENVS) if "continuous" in options else RIGHT
    before = env.clone_state()
    twin.step(actions)
    states = {"before": contents(before), "after": contents(twin.clone_state())}
    seen = set()

    def check() -> None:
        now = contents(env.clone_state())
        seen.update(name for name, state in states.items() if state == now)
        assert now in states.values()
        env.step(actions)
        env.restore_state(before)

    assert interrupted_everywhere(lambda: env.step(actions), check, stride) > 50
    assert seen == set(states)


def test_send_and_recv_interrupted_before_any_byte_code_go_on_or_say_what_is_missing() -> None:
    env = started()

    def after_send() -> None:
        try:
            env.recv()
        except error.NoAsyncCallError as problem:
            assert "expected step_async() before recv()" in str(problem)
        env.step(STILL)

    interrupted_everywhere(lambda: env.send(RIGHT), after_send)
    env.recv()
    twin = started()
    for count in range(1, 200):
        twin.restore_state(env.clone_state())
        twin.step(RIGHT)
        env.send(RIGHT)
        try:
            with interrupt_at(count):
                env.recv()
        except KeyboardInterrupt:
            with suppress(error.NoAsyncCallError):
                env.recv()
            assert contents(env.clone_state()) == contents(twin.clone_state())
            env.step(STILL)
        else:
            break
    assert count > 10


@STRIDES
@pytest.mark.parametrize("pool", [0, 2])
def test_reset_interrupted_before_any_byte_code_leaves_each_env_as_it_was_or_reset(
    pool: int, stride: int
) -> None:
    env, twin = started(reset_pool_size=pool), started(reset_pool_size=pool)
    env.step(RIGHT)
    before = env.clone_state()
    twin.restore_state(before)
    twin.reset(seed=5)
    either = list(zip(contents(before), contents(twin.clone_state()), strict=True))

    def check() -> None:
        assert all(
            now in states for now, states in zip(contents(env.clone_state()), either, strict=True)
        )
        env.step(STILL)
        env.restore_state(before)

    assert interrupted_everywhere(lambda: env.reset(seed=5), check, stride) > 50


def test_first_reset_that_is_interrupted_can_be_made_again() -> None:
    env = cule.AtariEnv("pong", ENVS, device="cpu", num_threads=1, reset_pool_size=2)

    def check() -> None:
        with pytest.raises(error.ResetNeeded, match=r"expected reset\(\) before the first step"):
            env.step(STILL)

    for count in range(1, 20):
        with pytest.raises(KeyboardInterrupt), interrupt_at(count):
            env.reset(seed=0)
        check()
    env.reset(seed=0)
    env.step(STILL)


@STRIDES
@pytest.mark.parametrize("ids", [None, [1]])
def test_restore_state_interrupted_before_any_byte_code_restores_all_or_nothing(
    ids: list[int] | None, stride: int
) -> None:
    env = started()
    other = env.clone_state(ids)
    for _ in range(3):
        env.step(RIGHT)
    before = env.clone_state()
    env.restore_state(other, ids)
    states = [contents(before), contents(env.clone_state())]
    assert states[0] != states[1]
    env.restore_state(before)

    def check() -> None:
        assert contents(env.clone_state()) in states
        env.step(STILL)
        env.restore_state(before)

    assert interrupted_everywhere(lambda: env.restore_state(other, ids), check, stride) > 100


@STRIDES
def test_copy_state_interrupted_before_any_byte_code_copies_all_or_nothing(stride: int) -> None:
    env = started()
    env.step([2, 3])
    before = env.clone_state()
    env.copy_state([0], [1])
    states = [contents(before), contents(env.clone_state())]
    env.restore_state(before)

    def check() -> None:
        assert contents(env.clone_state()) in states
        env.step(STILL)
        env.restore_state(before)

    assert interrupted_everywhere(lambda: env.copy_state([0], [1]), check, stride) > 100


@pytest.mark.parametrize(
    "name", ["clone_state", "get_ram", "get_screen", "get_screen_rgb", "render"]
)
def test_reading_that_is_interrupted_changes_nothing(name: str) -> None:
    env = started()
    before = contents(env.clone_state())

    def check() -> None:
        assert contents(env.clone_state()) == before

    assert interrupted_everywhere(getattr(env, name), check) > 10
    env.step(STILL)


def test_close_that_is_interrupted_can_be_called_again() -> None:
    for count in range(1, 10_000):
        env = started()
        try:
            with interrupt_at(count):
                env.close()
        except KeyboardInterrupt:
            try:
                env.step(STILL)
            except error.ClosedEnvironmentError as problem:
                assert "after close()" in str(problem)
            env.close()
            assert env.closed
        else:
            break
    assert count > 20


@pytest.mark.parametrize("singly", [False, True])
def test_flights_interrupted_before_any_byte_code_are_usable_once_settled(singly: bool) -> None:
    env = cule.AtariEnv("pong", 3, device="cpu", num_threads=2, reset_pool_size=1)
    env.reset(seed=0)
    flights = Flights(env)

    def call() -> None:
        flight = flights.step([2, 0], [1, 2], singly=singly)
        flights.take(2) if singly else flights.wait(flight)
        flight = flights.reset([1], 5, singly=singly)
        flights.take(1) if singly else flights.wait(flight)

    def check() -> None:
        flights.settle()
        assert flights.flying == 0
        before = env.engine.tensors["episode_frame_numbers"].clone()
        env.step([0, 0, 0])
        flights.wait(flights.step(slice(3), [0, 0, 0]))
        after = env.engine.tensors["episode_frame_numbers"]
        assert (after - before).tolist() == [8, 8, 8]

    assert interrupted_everywhere(call, check, 11) > 50
    env.close()
    with pytest.raises(error.ClosedEnvironmentError):
        flights.settle()


@pytest.mark.parametrize("batch_size", [2, 3])
def test_envpool_interrupted_before_any_byte_code_is_usable_once_settled(batch_size: int) -> None:
    env = envpool.make(
        "Pong-v5", num_envs=3, batch_size=batch_size, num_threads=2, reset_pool_size=1, noop_max=1,
        max_episode_steps=2, frame_skip=1, device="cpu",
    )  # fmt: skip
    assert env.reset()[1]["elapsed_step"].tolist() == [0] * batch_size
    env.settle()  # The reset of the third may still be in flight.
    first = env.env.engine.tensors["episode_frame_numbers"].numpy().copy()
    ids = np.arange(batch_size)

    def call() -> None:
        nonlocal ids
        env.settle()
        env.send(np.zeros(3, np.int32))
        ids = env.recv()[-1]["env_id"]
        env.reset(ids)

    def check() -> None:
        env.settle()
        env.send(np.zeros(3, np.int32))
        *_, truncated, info = env.recv()
        ids = info["env_id"]
        frames = env.env.engine.tensors["episode_frame_numbers"].numpy() - first
        assert info["elapsed_step"].tolist() == frames[ids].tolist()
        assert truncated.tolist() == (frames[ids] == 2).tolist()

    assert interrupted_everywhere(call, check, 29) > 50
    env.close()
    with pytest.raises(error.ClosedEnvironmentError):
        env.settle()
