"""Wrong actions, and calls in the wrong order: errors say what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import torch
from bad_arguments import make, started
from gymnasium import error

import cule
from cule.adapters import envpool
from cule.env.flights import Flights
from cule.single_env import SingleAtariEnv

# Actions ------------------------------------------------------------------------------------------

WRONG_ACTIONS = [
    (np.zeros(2, np.float32), TypeError, "actions to be integers, got torch.float32"),
    (np.zeros(2, bool), TypeError, "actions to be integers, got torch.bool"),
    (
        torch.zeros(2, dtype=torch.complex64),
        TypeError,
        "actions to be integers, got torch.complex64",
    ),
    (np.zeros(2, np.complex64), TypeError, "actions to be an array of numbers"),
    ([None, 1], TypeError, r"actions to be an array of numbers, got \[None, 1\]"),
    ([[1], [1, 2]], TypeError, "actions to be an array of numbers"),
    ("ab", TypeError, "actions to be an array of numbers, got 'ab'"),
    (["a", "b"], TypeError, "actions to be an array of numbers"),
    (None, TypeError, "actions to be an array of numbers, got None"),
    ({"a": 1}, TypeError, "actions to be an array of numbers"),
    (3, ValueError, r"actions to have shape \(2,\), got \(\)"),
    ([], TypeError, "actions to be integers, got torch.float64"),
    (np.zeros(0, int), ValueError, r"actions to have shape \(2,\), got \(0,\)"),
    (np.zeros(3, int), ValueError, r"actions to have shape \(2,\), got \(3,\)"),
    (np.zeros((2, 1), int), ValueError, r"actions to have shape \(2,\), got \(2, 1\)"),
    ([0, 6], ValueError, "actions from 0 to 5, got values from 0 to 6"),
    ([-1, 0], ValueError, "actions from 0 to 5, got values from -1 to 0"),
    ([0, 2**32], ValueError, "actions from 0 to 5, got values from 0 to 4294967296"),
    (
        torch.zeros(2, dtype=torch.int64, device="meta"),
        ValueError,
        "actions on cpu, got a tensor on meta",
    ),
]


@pytest.mark.parametrize(
    ("actions", "exception", "message"), WRONG_ACTIONS, ids=lambda value: str(value)[:40]
)
def test_wrong_actions_are_refused(
    pong: cule.AtariEnv, actions: Any, exception: type[Exception], message: str
) -> None:
    frames = pong.step(np.zeros(2, int))[4]["frame_number"].clone()
    with pytest.raises(exception, match=message) as raised:
        pong.step(actions)
    assert isinstance(raised.value, error.Error)
    after = pong.step(np.zeros(2, int))[4]["frame_number"]
    assert torch.equal(after, frames + 4)


@pytest.mark.parametrize(
    ("actions", "exception", "message"),
    [
        ([0, 18], ValueError, "player_b_actions from 0 to 17, got values from 0 to 18"),
        ([0.0, 1.0], TypeError, "player_b_actions to be integers, got torch.float64"),
        ([0], ValueError, r"player_b_actions to have shape \(2,\), got \(1,\)"),
    ],
)
def test_wrong_actions_of_player_b_are_refused(
    pong: cule.AtariEnv, actions: Any, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message):
        pong.step(np.zeros(2, int), player_b_actions=actions)
    pong.step(np.zeros(2, int))


@pytest.mark.parametrize(
    "dtype", ["int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"]
)
def test_integer_actions_of_any_width_are_taken(pong: cule.AtariEnv, dtype: str) -> None:
    state = pong.clone_state()

    def ram(actions: Any) -> torch.Tensor:
        pong.restore_state(state)
        for _ in range(5):
            pong.step(actions)
        return pong.get_ram()

    wanted = ram([2, 5])
    assert not torch.equal(wanted, ram([5, 2]))
    assert torch.equal(ram(np.array([2, 5], dtype)), wanted)
    assert torch.equal(ram(torch.from_numpy(np.array([2, 0, 5, 0], dtype))[::2]), wanted)
    with pytest.raises(ValueError, match="expected actions from 0 to 5, got values from 5 to 6"):
        pong.step(np.array([5, 6], dtype))


@pytest.mark.filterwarnings("error")
def test_read_only_and_reversed_arrays_are_taken(pong: cule.AtariEnv) -> None:
    actions = np.array([0, 5])[::-1]
    actions.flags.writeable = False
    pong.step(actions)
    pong.reset(options={"reset_mask": np.array([True, False])[::-1]})


@pytest.mark.parametrize(
    ("actions", "exception", "message"),
    [
        (
            np.full((2, 3), np.nan, np.float32),
            ValueError,
            "actions to be finite, got NaN or infinity",
        ),
        (
            np.full((2, 3), np.inf, np.float32),
            ValueError,
            "actions to be finite, got NaN or infinity",
        ),
        (np.full((2, 3), 1e30, np.float32), ValueError, "radius from 0 to 1, got 1.0"),
        (
            np.array([[0, 0, 0], [-0.5, 0, 0]], np.float32),
            ValueError,
            "radius from 0 to 1, got -0.5 to 0.0",
        ),
        (np.zeros((2, 3)), TypeError, "actions to be float32, got torch.float64"),
        (np.zeros((2, 3), int), TypeError, "actions to be float32, got torch.int64"),
        (np.zeros((2, 2), np.float32), ValueError, r"actions to have shape \(2, 3\), got \(2, 2\)"),
        (np.zeros(2, np.float32), ValueError, r"actions to have shape \(2, 3\), got \(2,\)"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_continuous_actions_are_refused(
    actions: Any, exception: type[Exception], message: str
) -> None:
    env = started(continuous=True)
    with pytest.raises(exception, match=message):
        env.step(actions)
    env.step(np.zeros((2, 3), np.float32))


def test_continuous_actions_with_a_gradient_leave_none_behind() -> None:
    env = started(continuous=True)
    actions = torch.full((2, 3), 0.5, requires_grad=True)
    for _ in range(2):
        results = env.step(actions * 1.0)
    assert not results[1].requires_grad
    assert not env.engine.tensors["strengths"].requires_grad


# Order of calls -----------------------------------------------------------------------------------

CALLS: list[Callable[[cule.AtariEnv], Any]] = [
    lambda env: env.reset(), lambda env: env.step([0, 0]), lambda env: env.get_ram(),
    lambda env: env.get_screen(),
    lambda env: env.get_screen_rgb(), lambda env: env.get_screen_grayscale(),
    lambda env: env.render(),
    lambda env: env.clone_state(), lambda env: env.restore_state(None),
    lambda env: env.copy_state([0], [1]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_call_after_close_is_refused(call: Callable[[cule.AtariEnv], Any]) -> None:
    env = started()
    env.close()
    env.close()
    with pytest.raises(
        error.ClosedEnvironmentError, match=r"expected an open env, got \w+\(\) after close\(\)"
    ):
        call(env)


def test_halves_of_a_step_come_in_turns() -> None:
    env = started()
    with pytest.raises(error.NoAsyncCallError, match=r"expected step_async\(\) before recv\(\)"):
        env.recv()
    env.send([0, 0])
    for call in (lambda: env.send([0, 0]), env.reset):
        with pytest.raises(
            error.AlreadyPendingCallError, match=r"expected step_wait\(\) after step_async\(\)"
        ):
            call()
    assert env.recv()[0].shape == (2, 4, 84, 84)
    env.reset()
    with pytest.raises(error.NoAsyncCallError):
        env.recv()


def test_tensors_outlive_close() -> None:
    env = started()
    obs = env.step([0, 0])[0]
    env.close()
    assert obs.shape == (2, 4, 84, 84)
    assert obs.any()


def test_call_before_reset_is_refused() -> None:
    env = make()
    state = started(num_envs=1).clone_state()
    for call in (
        lambda: env.step([0, 0]), env.clone_state, lambda: env.copy_state([0], [1]),
        lambda: env.restore_state(state, [1]), env.render, env.get_ram, env.get_screen,
        env.get_screen_rgb, env.get_screen_grayscale, env.rgb_screens,
    ):  # fmt: skip
        with pytest.raises(error.ResetNeeded, match=r"expected reset\(\) before the first"):
            call()
    with pytest.raises(
        error.ResetNeeded, match="expected the first reset to reset every env, got a reset_mask"
    ):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(error.ResetNeeded, match="before the first step"):
        env.step([0, 0])
    env.reset(seed=0)
    env.step([0, 0])
    assert env.get_screen().shape == (2, 210, 160)


def test_constructor_that_raises_leaves_an_env_that_can_be_closed() -> None:
    env = cule.AtariEnv.__new__(cule.AtariEnv)
    with pytest.raises(ValueError, match="num_envs"):
        env.__init__("pong", 0)
    env.close()


# Masked arrays ------------------------------------------------------------------------------------

MASKED = np.ma.array([0, 1], mask=[True, False])


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.step(MASKED),
        lambda env: env.step([0, np.ma.masked]),
        lambda env: env.step(np.ma.array([0, 1])),
        lambda env: env.step_async(MASKED),
        lambda env: env.reset(seed=MASKED),
        lambda env: env.reset(options={"reset_mask": MASKED.astype(bool)}),
        lambda env: env.clone_state(MASKED),
        lambda env: env.copy_state(MASKED, [0, 1]),
        lambda env: Flights(env).step(MASKED, [0, 1]),
    ],
    ids=range(9),
)
def test_array_with_a_mask_is_refused(pong: cule.AtariEnv, call: Callable[..., Any]) -> None:
    """As a plain array it would lose the mask, and what is hidden would be played."""
    with pytest.raises(TypeError, match=r"expected \w+ without a mask of NumPy's, .* got masked"):
        call(pong)


def test_adapters_refuse_arrays_with_a_mask() -> None:
    with pytest.raises(TypeError, match="expected seed without a mask"):
        envpool.make("Pong-v5", num_envs=2, seed=MASKED, num_threads=1)
    pool = envpool.make("Pong-v5", num_envs=2, num_threads=1)
    with closing(pool):
        for call in (
            lambda: pool.reset(seed=MASKED),
            lambda: pool.reset(env_id=MASKED),
            lambda: pool.step(MASKED),
            lambda: pool.step([0, 1], MASKED),
        ):
            with pytest.raises(TypeError, match="without a mask of NumPy's"):
                call()
            pool.reset()
    with closing(SingleAtariEnv("pong")) as env:
        env.reset()
        with pytest.raises(TypeError, match="expected action without a mask"):
            env.step(np.ma.masked)
