"""Tensors from outside that cannot be read, and torch's modes around the envs' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from rollouts import outputs
from torch._subclasses.fake_tensor import FakeTensorMode

import cule
from cule.env.flights import Flights
from cule.single_env import SingleAtariEnv


def make(**options: Any) -> cule.AtariEnv:
    return cule.AtariEnv("pong", 2, device="cpu", num_threads=1, reset_pool_size=1, **options)


@pytest.fixture(scope="module")
def env() -> Iterator[cule.AtariEnv]:
    made = make()
    made.reset(seed=0)
    yield made
    made.close()


def freed(tensor: torch.Tensor) -> torch.Tensor:
    tensor.untyped_storage().resize_(0)
    return tensor


def cut(tensor: torch.Tensor) -> torch.Tensor:
    tensor.untyped_storage().resize_(tensor.element_size())
    return tensor


def fake(tensor: torch.Tensor) -> torch.Tensor:
    return FakeTensorMode().from_tensor(tensor)


def nested(tensor: torch.Tensor) -> torch.Tensor:
    return torch.nested.nested_tensor([tensor, tensor], dtype=tensor.dtype)


UNREADABLE = [freed, cut, fake, nested, torch.Tensor.to_sparse, lambda tensor: tensor.to("meta")]


@pytest.mark.parametrize("spoil", UNREADABLE)
@pytest.mark.parametrize(
    ("use", "dtype"),
    [
        (lambda env, bad: env.step(bad), torch.int64),
        (lambda env, bad: env.step_async(bad), torch.int32),
        (lambda env, bad: env.step([0, 0], bad), torch.int64),
        (lambda env, bad: env.reset(options={"reset_mask": bad}), torch.bool),
        (lambda env, bad: env.clone_state(bad), torch.int64),
        (lambda env, bad: env.copy_state([0, 1], bad), torch.int64),
        (lambda env, bad: env.restore_state(env.clone_state(), bad), torch.int64),
        (lambda env, bad: env.rgb_screens(bad), torch.int64),
        (lambda env, bad: Flights(env).step(bad, [0, 0]), torch.int64),
        (lambda env, bad: Flights(env).results(bad), torch.int64),
        (lambda env, bad: env.step([bad, 0]), torch.int64),
        (lambda env, bad: cule.EpisodeStatistics(env).reset(options={"reset_mask": bad}),
         torch.bool),
    ],
)  # fmt: skip
def test_tensor_that_cannot_be_read_is_refused(
    env: cule.AtariEnv,
    spoil: Callable[[torch.Tensor], torch.Tensor],
    use: Callable[[cule.AtariEnv, torch.Tensor], Any],
    dtype: torch.dtype,
) -> None:
    before = env.get_ram()
    bad = spoil(torch.tensor([0, 1]).to(dtype))
    with pytest.raises((TypeError, ValueError), match=r"expected \w+ (to be a dense|on cpu, got)"):
        use(env, bad)
    assert torch.equal(env.get_ram(), before)


@pytest.mark.parametrize("inside", [lambda bad: bad, lambda bad: [bad], lambda bad: {0: [bad]}])
@pytest.mark.parametrize("spoil", [freed, cut, fake, nested])
def test_message_about_a_value_does_not_print_memory_that_is_not_there(
    env: cule.AtariEnv, spoil: Callable[..., torch.Tensor], inside: Callable[[torch.Tensor], Any]
) -> None:
    bad = inside(spoil(torch.zeros(2)))
    for use in (
        lambda: env.reset(seed=bad), lambda: make(obs_type=bad), lambda: make(output=bad),
        lambda: make(mode=bad), lambda: cule.AtariEnv("pong", device=bad),
        lambda: make(noop_max=bad), lambda: SingleAtariEnv("pong").step(bad),
        lambda: Flights(env).wait(bad), lambda: Flights(env).take(bad),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=r"expected .*, got .*Tensor"):
            use()


def test_range_that_no_call_takes_is_refused_at_once(env: cule.AtariEnv) -> None:
    for use in (lambda many: env.reset(seed=many), env.step, env.clone_state):
        with pytest.raises(ValueError, match="at most 16777216 numbers, got 1000000000"):
            use(range(10**9))


def played() -> list[torch.Tensor]:
    """What an env does that its neighbours, made and used in other modes, do as well."""
    return use(*everything())


def everything() -> tuple[Any, ...]:
    env = cule.EpisodeStatistics(make())
    env.reset(seed=0)
    stick = make(continuous=True, autoreset_mode="same_step", render_mode="rgb_array_list")
    stick.reset(seed=0)
    flights = Flights(make())
    flights.wait(flights.reset(slice(2), seed=0))
    return env, stick, flights


def use(env: cule.EpisodeStatistics, stick: cule.AtariEnv, flights: Flights) -> list[torch.Tensor]:
    found = list(outputs(env.atari, env.atari.step([2, 3])))
    env.step(torch.tensor([2, 3], device="cpu"))
    state = env.atari.clone_state()
    env.step([3, 3], [1, 1])
    env.atari.restore_state(state)
    env.atari.copy_state([0], [1])
    env.reset(seed=4, options={"reset_mask": [False, True]})
    env.step([0, 0])
    found += [env.atari.get_ram(), torch.from_numpy(env.atari.render()), env.mean_return]
    found += outputs(stick, stick.step(np.ones((2, 3), np.float32)))
    stick.render()
    flights.wait(flights.reset([1, 0], seed=[3, 4]))
    flights.wait(flights.step([1, 0], [2, 3]))
    return [one.clone() for one in (*found, *flights.results(slice(2))[:4])]


def equal(found: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
    return len(found) == len(expected) and all(
        torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(found, expected, strict=True)
    )


def test_what_inference_mode_made_works_outside_and_the_other_way_round() -> None:
    outside = everything()
    expected = [use(*outside) for _ in range(2)]
    with torch.inference_mode():
        made = everything()
    assert equal(use(*made), expected[0])
    with torch.inference_mode():
        assert equal(use(*made), expected[1])
    weights = torch.ones(1, requires_grad=True)
    (made[1].step(np.zeros((2, 3), np.float32))[1] * weights).sum().backward()
    assert weights.grad is not None


@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_default_device_changes_nothing(device: str) -> None:
    expected = played()
    before = torch.get_default_device()
    torch.set_default_device(device)
    try:
        found = played()
    finally:
        torch.set_default_device(None if before == torch.device("cpu") else before)
    assert equal(found, expected)
