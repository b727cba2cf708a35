"""Some envs in flight while others wait: each plays as it would in a batch that steps together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import error
from rollouts import make, outputs

import cule
from cule.env.flights import Flights

GAMES = ["breakout", "pong", "ms_pacman"]
OPTIONS: dict[str, Any] = {"max_num_frames_per_episode": 100, "repeat_action_probability": 0.25}


def pair(num_envs: int, **options: Any) -> tuple[cule.AtariEnv, Flights]:
    """The same envs, of which the first step together."""
    together, apart = (make(GAMES, num_envs, **(OPTIONS | options)) for _ in range(2))
    together.reset(seed=3)
    apart.reset(seed=3)
    return together, Flights(apart)


def played(env: cule.AtariEnv, actions: np.ndarray) -> list[list[torch.Tensor]]:
    """Everything that the steps return, and RAM, [step][what]."""
    return [outputs(env, env.step(row)) for row in actions]


def rows_of(flights: Flights, rows: Any) -> list[torch.Tensor]:
    """What these envs did, in the order of `outputs`."""
    observations, rewards, terminated, truncated, infos = flights.results(rows)
    everywhere = {f"_{key}": flights.env.consoles.outputs.everywhere[rows] for key in infos}
    infos = dict(sorted((infos | everywhere).items()))
    ram = flights.env.engine.tensors["ram"][rows]
    return [observations, rewards, terminated, truncated, *infos.values(), ram]


def equal(found: list[torch.Tensor], expected: list[torch.Tensor], rows: Any) -> bool:
    return len(found) == len(expected) and all(
        torch.equal(a, b[rows]) for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_groups_in_flight_play_as_all_together(groups: int, num_threads: int) -> None:
    together, flights = pair(10, num_threads=num_threads)
    actions = np.random.default_rng(0).integers(4, size=(40, 10))
    expected = played(together, actions)
    parts = [slice(10 * i // groups, 10 * (i + 1) // groups) for i in range(groups)]
    flying = [flights.step(part, actions[0, part]) for part in parts]
    for step in range(40):
        for i, part in enumerate(parts):
            flights.wait(flying[i])
            assert equal(rows_of(flights, part), expected[step], part)
            if step < 39:
                flying[i] = flights.step(part, actions[step + 1, part])
    assert not flights.env.engine.in_flight
    assert torch.equal(flights.env.get_ram(), together.get_ram())


def test_envs_that_step_together_play_as_any_others() -> None:
    """Actions are read from the same memory in each step, and checked in each."""
    together, flights = pair(10, num_threads=2)
    actions = np.random.default_rng(0).integers(4, size=(40, 10))
    expected = played(together, actions)
    parts = [slice(0, 4), slice(4, 10)]
    memory = [torch.zeros(part.stop - part.start, dtype=torch.int64) for part in parts]
    groups = [*map(flights.together, parts, memory)]
    for step in range(40):
        flying = []
        for part, given, group in zip(parts, memory, groups, strict=True):
            given.copy_(torch.from_numpy(actions[step, part]))
            flying.append(group.step())
        for part, flight in zip(parts, flying, strict=True):
            flights.wait(flight)
            assert equal(rows_of(flights, part), expected[step], part)
    assert torch.equal(flights.env.get_ram(), together.get_ram())
    for wrong in (18, -1):
        memory[0][2] = wrong
        with pytest.raises(ValueError, match=f"expected actions from 0 to 17, got .* {wrong}"):
            groups[0].step()
    memory[0][2] = 0
    flight = groups[0].step()
    with pytest.raises(error.AlreadyPendingCallError, match="expected envs that are not in flight"):
        groups[0].step()
    flights.wait(flight)
    flights.env.close()
    with pytest.raises(error.ClosedEnvironmentError):
        groups[0].step()


def test_what_cannot_step_together_is_refused() -> None:
    _, flights = pair(4)
    for memory, problem in (
        (torch.zeros(2, dtype=torch.int32), TypeError),
        (torch.zeros(3, dtype=torch.int64), ValueError),
        (torch.full((2,), 99), ValueError),
    ):
        with pytest.raises(problem, match="expected actions"):
            flights.together(slice(0, 2), memory)
    with pytest.raises(ValueError, match="at least one env"):
        flights.together(slice(2, 2), torch.zeros(0, dtype=torch.int64))


@pytest.mark.parametrize("options", [{"continuous": True}, {"num_players": 2}])
def test_actions_of_other_shapes_step_together(options: dict[str, Any]) -> None:
    """Of two players each has an action; a vector is no number, and is refused."""
    together, apart = (cule.AtariEnv("pong", 4, "cpu", **options) for _ in range(2))
    for env in (together, apart):
        env.reset(seed=0)
    flights = Flights(apart)
    if "continuous" in options:
        with pytest.raises((TypeError, ValueError), match="expected actions"):
            flights.together(slice(0, 4), torch.zeros(4, dtype=torch.int64))
        return
    memory = torch.zeros(4, 2, dtype=torch.int64)
    group = flights.together(slice(0, 4), memory)
    for step in range(30):
        memory[:, 0], memory[:, 1] = step % 6, 5 - step % 6
        rewards = together.step(memory)[1]
        flights.wait(group.step())
        assert torch.equal(flights.results(slice(0, 4))[1], rewards)
    assert torch.equal(apart.get_ram(), together.get_ram())


def test_a_flight_is_done_once_its_envs_have_played() -> None:
    _, flights = pair(4, num_threads=1)
    # One thread plays the second flight after the first.
    first, second = (flights.step(part, [0, 1]) for part in (slice(0, 2), slice(2, 4)))
    flights.wait(second)
    assert flights.is_done(first)
    flights.wait(first)
    for flight in (first, second + 1):
        with pytest.raises(ValueError, match="flight that has not landed"):
            flights.is_done(flight)
    with pytest.raises(TypeError, match="expected flight"):
        flights.is_done("first")  # type: ignore[arg-type]
    flights.env.close()
    with pytest.raises(error.ClosedEnvironmentError):
        flights.is_done(first)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_envs_taken_as_they_land_play_as_all_together(num_threads: int) -> None:
    """Envs are sent in random sets, and those that are done go on at once."""
    together, flights = pair(7, num_threads=num_threads)
    rng = np.random.default_rng(1)
    actions = rng.integers(4, size=(60, 7))
    expected = played(together, actions)
    steps, waiting = np.zeros(7, int), set(range(7))
    while (steps < 60).any():
        ids = rng.permutation([env for env in waiting if steps[env] < 60])
        for some in filter(len, np.array_split(ids, rng.integers(1, 3))):
            flights.step(some, actions[steps[some], some], singly=True)
        waiting -= set(ids.tolist())
        taken = flights.take(int(rng.integers(1, flights.flying + 1)))
        for env in taken:
            rows = torch.tensor([env])
            assert equal(rows_of(flights, rows), expected[steps[env]], rows)
        steps[taken] += 1
        waiting |= set(taken.tolist())


@pytest.mark.parametrize("pool", [0, 3])
def test_resets_in_flight_are_those_of_the_batch(pool: int) -> None:
    together, flights = pair(6, reset_pool_size=pool)
    some = np.array([4, 1])
    mask = torch.zeros(6, dtype=torch.bool)
    mask[some] = True
    observations, _ = together.reset(seed=[9, 5], options={"reset_mask": mask})
    flight = flights.reset(some, [5, 9])
    other = flights.step(np.array([0]), [1])
    flights.wait(flight)
    flights.wait(other)
    assert torch.equal(flights.results(torch.from_numpy(some))[0], observations[some])
    fresh = Flights(make(GAMES, 6, **(OPTIONS | {"reset_pool_size": pool})))
    with pytest.raises(error.ResetNeeded, match="before the first reset of some envs"):
        fresh.reset(some)
    fresh.wait(fresh.reset(slice(None), 3))
    again = make(GAMES, 6, **(OPTIONS | {"reset_pool_size": pool}))
    assert torch.equal(fresh.results(slice(None))[0], again.reset(seed=3)[0])


def test_seeds_are_for_the_envs_in_the_order_in_which_they_are_named() -> None:
    together, flights = pair(4, noop_max=30, reset_pool_size=0)
    together.reset(seed=[2, 1], options={"reset_mask": [True, False, False, True]})
    flights.wait(flights.reset([3, 0], seed=[1, 2]))
    assert torch.equal(flights.env.get_ram(), together.get_ram())
    together.reset(seed=7, options={"reset_mask": [True, False, True, False]})
    flights.wait(flights.reset([2, 0], seed=7))
    assert torch.equal(flights.env.get_ram(), together.get_ram())


def test_wrong_calls_are_refused_and_start_nothing() -> None:
    together, flights = pair(4)
    fresh = Flights(make(num_envs=4))
    with pytest.raises(error.ResetNeeded):
        fresh.step(slice(0, 2), [0, 0])
    flight = flights.step(slice(0, 2), [1, 2])
    with pytest.raises(
        error.AlreadyPendingCallError, match=r"expected envs that are not in flight, got \[1\]"
    ):
        flights.step(np.array([1, 2]), [0, 0])
    with pytest.raises(error.AlreadyPendingCallError, match=r"got get_ram\(\) while a step is in"):
        flights.env.get_ram()
    with pytest.raises(ValueError, match="take at most 0 envs, as many as are in flight singly"):
        flights.take(1)
    with pytest.raises(ValueError, match="number of a flight that has not landed, got 99"):
        flights.wait(99)
    for ids, actions, sentence in (
        ([3, 3], [0, 0], r"expected each env once, got \[3, 3\]"),
        ([3, 2], [0], r"actions to have shape \(2,\)"),
        ([3], [77], "actions from 0 to"),
        ([], [], "the number of at least one env, got none"),
    ):
        with pytest.raises(ValueError, match=sentence):
            flights.step(np.array(ids), actions)
    with pytest.raises(ValueError, match="the step of a slice not to be 0"):
        flights.step(slice(2, 4, 0), [0, 0])
    for ids, sentence in (
        ([2.0, 3.9], "env_ids to be a list of integers, got torch.float64"),
        ([False, True], "env_ids to be a list of integers, got torch.bool"),
        ([2**32 + 2, 3], "env_ids from 0 to 3, got"),
        ([2, -1], "env_ids from 0 to 3, got"),
        ([[2, 3]], "env_ids to be a list of integers, got torch.int64 of shape"),
        (torch.zeros(2, dtype=torch.int64, device="meta"), "env_ids to be a dense tensor"),
    ):
        for start in (lambda ids: flights.step(ids, [0, 0]), flights.reset):
            with pytest.raises((TypeError, ValueError), match=sentence):
                start(ids)
    with pytest.raises(TypeError, match="expected count to be an integer, got True"):
        flights.take(True)
    assert flights.flying == 2
    flights.wait(flight)
    with pytest.raises(ValueError, match="number of a flight"):
        flights.wait(flight)
    flight = flights.step(slice(2, 4), [1, 2])
    flights.wait(flight)
    together.step([1, 2, 1, 2])
    assert torch.equal(flights.env.get_ram(), together.get_ram())
    flights.step(slice(0, 4), [0] * 4)
    flights.env.close()
    with pytest.raises(error.ClosedEnvironmentError):
        flights.wait(0)


@pytest.mark.gpu
def test_envs_on_a_gpu_do_not_fly() -> None:
    with pytest.raises(ValueError, match=r"env with device='cpu' to step some .* got device cuda"):
        Flights(make(device="cuda"))
