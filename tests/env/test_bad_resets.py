"""Wrong arguments of resets and states: errors say what was expected and what came."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from bad_arguments import started
from gymnasium import error

import cule

# Resets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "exception", "message"),
    [
        (np.zeros(2, int), TypeError, "reset_mask to be a boolean array, got int64"),
        (np.zeros(2, object), TypeError, "reset_mask to be a boolean array, got object"),
        (torch.zeros(2), TypeError, "reset_mask to be a boolean array, got torch.float32"),
        ([1, 0], TypeError, "reset_mask to be a boolean array, got int64"),
        (["yes", "no"], TypeError, "reset_mask to be an array of numbers"),
        ([True], ValueError, r"reset_mask to have shape \(2,\), got \(1,\)"),
        (True, TypeError, "reset_mask to be a boolean array, got bool"),
        (np.zeros(3, bool), ValueError, r"reset_mask to have shape \(2,\), got \(3,\)"),
        (np.zeros((2, 1), bool), ValueError, r"reset_mask to have shape \(2,\), got \(2, 1\)"),
        (np.array(True), ValueError, r"reset_mask to have shape \(2,\), got \(\)"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_reset_mask_is_refused(
    pong: cule.AtariEnv, mask: Any, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message) as raised:
        pong.reset(options={"reset_mask": mask})
    assert isinstance(raised.value, error.Error)


@pytest.mark.parametrize("key", ["resetmask", "mask", 3, None])
def test_unknown_key_of_reset_options_is_refused(pong: cule.AtariEnv, key: Any) -> None:
    with pytest.raises(
        ValueError, match=f"expected options of a reset to be reset_mask, got {key!r}"
    ):
        pong.reset(options={"reset_mask": [True, True], key: 1})


@pytest.mark.parametrize("options", [[1], "reset_mask", 3])
def test_wrong_reset_options_are_refused(pong: cule.AtariEnv, options: Any) -> None:
    with pytest.raises(TypeError, match="expected options to be a dict"):
        pong.reset(options=options)


@pytest.mark.parametrize(
    ("seed", "exception", "message"),
    [
        (-1, ValueError, "seeds from 0 to 9223372036854775807, got -1"),
        (2**63, ValueError, "seeds from 0 to 9223372036854775807, got 9223372036854775809"),
        (2**70, ValueError, "seeds from 0 to"),
        (2**63 - 1, ValueError, "seeds from 0 to 9223372036854775807, got 9223372036854775808"),
        (0.5, TypeError, "seed to be an integer or one for each env, got 0.5"),
        (True, TypeError, "seed to be an integer or one for each env, got True"),
        ("7", TypeError, "seed to be an integer or one for each env, got '7'"),
        ({"a": 1}, TypeError, "seed to be an integer or one for each env"),
        (
            [1],
            ValueError,
            r"one integer for each of the 2 envs that are reset, got int64 of shape \(1,\)",
        ),
        ([1, -2], ValueError, "seeds from 0 to 9223372036854775807, got -2"),
        ([1.0, 2.0], ValueError, "one integer for each of the 2 envs that are reset, got float64"),
        ([True, False], ValueError, "one integer for each of the 2 envs that are reset, got bool"),
        ([None, 1], TypeError, "seed to be an array of numbers"),
        ([[1], [1, 2]], TypeError, "seed to be an array of numbers"),
        (
            np.array([0, 2**64 - 1], np.uint64),
            ValueError,
            "seeds from 0 to .*, got 18446744073709551615",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_seed_is_refused(
    pong: cule.AtariEnv, seed: Any, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message) as raised:
        pong.reset(seed=seed)
    assert isinstance(raised.value, error.Error)


def test_seeds_are_counted_by_the_mask(pong: cule.AtariEnv) -> None:
    with pytest.raises(ValueError, match="one integer for each of the 1 envs that are reset"):
        pong.reset(seed=[1, 2], options={"reset_mask": np.array([True, False])})


# States -------------------------------------------------------------------------------------------


def test_wrong_state_is_refused(pong: cule.AtariEnv) -> None:
    state = pong.clone_state()

    def other(**parts: Any) -> cule.State:
        return dataclasses.replace(state, **parts)

    def with_part(part: torch.Tensor) -> cule.State:
        return other(tensors=state.tensors | {"ram": part})

    ram = state.tensors["ram"]
    cases: list[tuple[Any, Any, type[Exception], str]] = [
        (None, None, TypeError, "expected a cule.State, got NoneType"),
        ({"version": 1}, None, TypeError, "expected a cule.State, got dict"),
        (other(version=99), None, ValueError, "expected a state of version 5, got version 99"),
        (started("breakout").clone_state(), None, ValueError,
         r"\('pong', 0, 0\), got one of \('breakout', 0, 0\)"),
        (started(mode=1).clone_state(), None, ValueError,
         r"\('pong', 0, 0\), got one of \('pong', 1, 0\)"),
        (started(difficulty=1).clone_state(), None, ValueError,
         r"\('pong', 0, 0\), got one of \('pong', 0, 1\)"),
        (pong.clone_state([0]), None, ValueError,
         "expected 2 states, one for each env, got 1; to put one .* call copy_state"),
        (state, [0], ValueError, "expected 1 states, one for each env, got 2"),
        (started(reset_pool_size=0).clone_state(), None, ValueError,
         "with the same reset_pool_size, 0 or not 0"),
        (started(stack_num=2).clone_state(), None, ValueError,
         "the envs were made with other options"),
        (started(img_width=40).clone_state(), None, ValueError,
         "the envs were made with other options"),
        (started(grayscale=False).clone_state(), None, ValueError,
         "the envs were made with other options"),
        (other(tensors={}), None, ValueError, "expected a state of an env"),
        (with_part(ram[:1]), None, ValueError,
         "expected ram to hold torch.uint8 for 2 envs, got torch.uint8 for 1"),
        (with_part(ram.float()), None, ValueError,
         "expected ram to hold torch.uint8 for 2 envs, got torch.float32"),
        (with_part(ram[:, :5]), None, ValueError,
         r"expected ram of shape \(128,\) for each env, got \(5,\)"),
        (state, [0, 0], ValueError, r"each env once, got env_ids \[0, 0\]"),
        (state, [0, 2], ValueError, r"env_ids from 0 to 1, got \[0, 2\]"),
        (state, [-1, 0], ValueError, r"env_ids from 0 to 1, got \[-1, 0\]"),
        (state, [0.0, 1.0], TypeError, "env_ids to be a list of integers, got torch.float64"),
        (state, [True, False], TypeError, "env_ids to be a list of integers, got torch.bool"),
        (state, 0, TypeError, r"env_ids to be a list of integers, such as \[0, 1\], got 0"),
        (state, "01", TypeError, "env_ids to be an array of numbers, got '01'"),
    ]  # fmt: skip
    for wrong, ids, exception, message in cases:
        with pytest.raises(exception, match=message):
            pong.restore_state(wrong, ids)
    pong.restore_state(state)


def test_wrong_copy_is_refused(pong: cule.AtariEnv) -> None:
    for source, target, message in (
        ([0, 1], [1], "expected src_ids and dst_ids of the same length, .* got 2 and 1"),
        ([0], [5], r"env_ids from 0 to 1, got \[5\]"),
        ([0, 0], [1, 1], "each env once"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            pong.copy_state(source, target)
    mixed = started(["pong", "breakout"])
    with pytest.raises(ValueError, match=r"\('breakout', 0, 0\), got one of \('pong', 0, 0\)"):
        mixed.copy_state([0], [1])
