"""Patches and set_ram of AtariEnv: which envs, when, and errors."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import cule
from cule import Patch
from cule.env.flights import Flights

# Pong shows the opponent's score of byte 13, and writes it when a point is lost.
SCORE, BALL = 13, 54
HELD = Patch.hold(SCORE, 7)


def make(count: int = 3, device: str = "cpu", **options: Any) -> cule.AtariEnv:
    env = cule.AtariEnv(
        "pong", count, device, **{"num_threads": 1} if device == "cpu" else {},
        **{"reset_pool_size": 2, "output": "numpy"} | options,
    )  # fmt: skip
    env.reset(seed=0)
    return env


def scores(env: cule.AtariEnv) -> list[int]:
    return torch.as_tensor(env.get_ram())[:, SCORE].tolist()


def test_each_env_has_its_own(device: str) -> None:
    env = make(4, device)
    env.set_patches([HELD, Patch.bits(14, 3, 2)], [1])
    env.set_patches(Patch.hold(SCORE, 9), torch.tensor([3], device=device))
    env.step([0] * 4)
    assert scores(env) == [0, 7, 0, 9]
    assert int(env.get_ram()[1, 14]) & 3 == 2
    env.set_patches(None, [1])
    env.set_ram(SCORE, 0)
    env.step([0] * 4)
    assert scores(env) == [0, 0, 0, 9]


def test_patches_of_the_constructor_are_those_of_all_envs(device: str) -> None:
    env = make(2, device, patches=[HELD, "parallel_enemy"])
    env.step([2, 3])
    ram = np.asarray(env.get_ram())
    assert scores(env) == [7, 7] and (ram[:, 21] == ram[:, 60]).all()


def test_a_name_means_the_modification_of_each_envs_game() -> None:
    env = cule.AtariEnv(
        ["breakout", "pong"], 2, "cpu", patches="right_drift", reset_pool_size=1, num_threads=1
    )
    table = env.engine.tensors["patches"]
    encoded = [cule.modifications(game)[number].patches[0].encoded()
               for game, number in (("breakout", 0), ("pong", 2))]  # fmt: skip
    assert table[0].tolist() == [list(row) for row in encoded]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("start", ["ale", "envpool"])
def test_patches_go_on_after_an_episode(mode: str, start: str, device: str) -> None:
    options = {"max_num_frames_per_episode": 12, "frameskip": 3, "episode_start": start}
    env = make(2, device, patches=HELD, autoreset_mode=mode, **options)
    began = 0
    for _ in range(12):
        info = env.step([0, 0])[4]
        new = np.asarray(info["new_game"])
        began += int(new.sum())
        # The frames of a reset are not patched.
        assert all(
            score == (0 if fresh else 7) for score, fresh in zip(scores(env), new, strict=True)
        )
    assert began >= 4


def test_states_go_on_with_the_patches_of_the_env(device: str) -> None:
    env = make(3, device)
    env.set_patches(HELD, [1])
    env.step([0] * 3)
    env.copy_state([1], [2])
    env.restore_state(env.clone_state([0]), [1])
    assert scores(env) == [0, 0, 7]
    env.set_ram(SCORE, 0)
    env.step([0] * 3)
    assert scores(env) == [0, 7, 0]


def test_a_restored_state_is_patched_at_the_same_frames() -> None:
    env = make(1, frameskip=4)
    env.set_patches([Patch.change(100, 1, every=3), Patch.change(BALL, 1, every=7)])
    for _ in range(10):
        env.step([0])
    state, found = env.clone_state(), []
    for _ in range(2):
        env.restore_state(state)
        rams = [env.step([2])[0] is not None and env.get_ram()[0].tolist() for _ in range(20)]
        found.append(rams)
    assert found[0] == found[1]


def test_envs_in_flight_are_patched_and_cannot_be_changed() -> None:
    env = make(3, patches=HELD, output="torch")
    flights = Flights(env)
    flight = flights.step([0, 2], [0, 0])
    for call in (lambda: env.set_patches(None), lambda: env.set_ram(1, 1)):
        with pytest.raises(gymnasium.error.AlreadyPendingCallError):
            call()
    flights.wait(flight)
    assert scores(env)[0] == scores(env)[2] == 7


def test_bytes_are_written_where_they_are_asked_for(device: str) -> None:
    env = make(3, device)
    env.set_ram(5, 200)
    assert np.asarray(env.get_ram())[:, 5].tolist() == [200] * 3
    env.set_ram([1, 2], [[1, 2], [3, 4]], [2, 0])
    env.set_ram(np.array([3]), torch.tensor([[9], [8], [7]], dtype=torch.uint8, device=device))
    env.set_ram([6, 7], [66, 77], [1])
    env.set_ram(8, [1, 2], [0, 1])
    ram = np.asarray(env.get_ram())
    assert ram[[2, 0], 1:3].tolist() == [[1, 2], [3, 4]] and ram[:, 3].tolist() == [9, 8, 7]
    assert ram[1, 6:8].tolist() == [66, 77] and ram[:2, 8].tolist() == [1, 2]


def captured() -> tuple[cule.AtariEnv, torch.Tensor, torch.cuda.CUDAGraph]:
    """Four envs on a GPU that hold the score at 1, actions, and a graph of a step with them."""
    env = make(4, "cuda", output="torch_shared", patches=Patch.hold(SCORE, 1), translate=False)
    actions = torch.zeros(4, dtype=torch.int32, device="cuda")
    env.step(actions)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        env.step(actions)
    return env, actions, graph


@pytest.mark.gpu
def test_a_captured_graph_applies_patches_that_are_set_later() -> None:
    env, _, graph = captured()
    env.set_patches(HELD, [2])
    graph.replay()
    assert scores(env) == [1, 1, 7, 1]
    env.set_patches([], [0, 1, 2, 3])
    env.set_ram(SCORE, 0)
    graph.replay()
    assert scores(env) == [0] * 4


@pytest.mark.gpu
def test_an_older_graph_goes_on_with_its_patches() -> None:
    env, actions, graph = captured()
    env.set_patches([HELD] * 9)
    junk = [torch.full((4 * 8,), 255, dtype=torch.uint8, device="cuda") for _ in range(999)]
    graph.replay()
    assert scores(env) == [1] * 4 and len(junk) == 999
    env.step(actions)
    assert scores(env) == [7] * 4


def test_without_patches_a_step_looks_for_none() -> None:
    env = make(2, patches=HELD)
    table = env.engine.tensors["patches"]
    env.set_patches(None, [0])
    assert env.engine.batch.num_patches == 1
    env.set_patches(None, [1])
    assert env.engine.batch.num_patches == 0
    env.step([0, 0])
    env.set_patches(HELD, [1])
    assert env.engine.batch.num_patches == 1 and env.engine.tensors["patches"] is table
    env.set_ram(SCORE, 0)
    env.step([0, 0])
    assert scores(env) == [0, 7]
    env.set_patches([HELD, Patch.hold(BALL, 3)], [0])
    env.step([0, 0])
    assert scores(env) == [7, 7] and env.get_ram()[0, BALL] == 3


@pytest.mark.gpu
def test_a_gpu_patches_as_a_cpu_does() -> None:
    rng, found = np.random.default_rng(0), []
    patches = [
        [Patch.change(int(a), 1, every=int(b)), Patch.copy(int(c), int(d), when=(int(a), 0, 99)),
         Patch.bits(int(d), 15, int(b))]
        for a, b, c, d in rng.integers(1, 128, (8, 4))
    ]  # fmt: skip
    actions = rng.integers(0, 6, (100, 8))
    for device in ("cpu", "cuda"):
        env = make(8, device)
        for number, own in enumerate(patches):
            env.set_patches(own, [number])
        for row in actions:
            results = env.step(row)
        found.append([np.asarray(env.get_ram()), *map(np.asarray, results[:4])])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_spec_has_the_patches() -> None:
    env = gymnasium.make_vec(
        "cule/Pong-v5", num_envs=1, device="cpu", patches=["up_drift", HELD], reset_pool_size=1
    )
    spec = gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert json.dumps(spec.kwargs["patches"])
    given: Any = [{"address": SCORE, "when": [BALL, 0, 9]}, Patch(np.int64(1), np.int64(2))]
    mapped = cule.AtariEnv(
        "pong", 1, "cpu", reset_pool_size=1,
        patches=given,
    )  # fmt: skip
    assert mapped.spec is not None and json.dumps(mapped.spec.kwargs["patches"][0])
    read = gymnasium.envs.registration.EnvSpec.from_json(mapped.spec.to_json())
    assert read.kwargs["patches"][0] == {"address": SCORE, "when": [BALL, 0, 9]}
    assert read.kwargs["patches"][1]["value"] == 2
    listed: Any = [2, np.int64(3), 4]
    assert hash(Patch(1, when=listed)) == hash(Patch(1, when=(2, 3, 4)))
    again = gymnasium.make_vec(spec).unwrapped
    table = env.unwrapped.engine.tensors["patches"]
    assert torch.equal(again.engine.tensors["patches"], table) and len(table) == 2
    single = gymnasium.make("cule/Pong-v4", patches=HELD)
    single.reset(seed=0)
    single.step(0)
    assert single.unwrapped.ale.getRAM()[SCORE] == 7


@pytest.mark.parametrize(
    ("patches", "exception", "message"),
    [
        ("up_drft", ValueError, r"a modification of 'pong' \(up_drift, .*; closest: 'up_drift'"),
        (7, TypeError, "patches to be cule.Patch, names of modifications, or a list .*got 7"),
        ([7], TypeError, "a patch to be a cule.Patch, the name of a modification or a mapping"),
        ({"address": 1, "size": 2}, TypeError, "with some of address, value, keep, source, when"),
        ({"address": 128}, ValueError, "a patch's address to be at most 127, got 128"),
        ([HELD] * 257, ValueError, "at most 256 patches for an env, got 257"),
    ],
)  # fmt: skip
def test_wrong_patches_are_refused(patches: Any, exception: type[Exception], message: str) -> None:
    with pytest.raises(exception, match=message):
        cule.AtariEnv("pong", 1, "cpu", patches=patches, reset_pool_size=1)
    env = make(2, patches=HELD)
    with pytest.raises(exception, match=message):
        env.set_patches(patches)
    env.step([0, 0])
    assert scores(env) == [7, 7]


@pytest.mark.parametrize(
    ("fields", "exception", "message"),
    [
        ({"address": -1}, ValueError, "address to be at least 0, got -1"),
        ({"address": 1, "value": 256}, ValueError, "value to be at most 255, got 256"),
        ({"address": 1, "every": 0}, ValueError, "every to be at least 1, got 0"),
        ({"address": 1, "keep": 1.0}, TypeError, "keep to be an integer, got 1.0"),
        ({"address": 1, "source": 200}, ValueError, "source to be at most 127, got 200"),
        ({"address": 1, "source": 5}, ValueError, "keep with a source, .* source 5 and keep 0"),
        ({"address": 1, "when": (1, 2)}, TypeError, r"\(address, least, most\), got \(1, 2\)"),
        ({"address": 1, "when": (1, 3, 2)}, ValueError, r"with least <= most, got \(1, 3, 2\)"),
        ({"address": 1, "when": (1, 3, 256)}, ValueError, "greatest value .* most 255, got 256"),
    ],
)  # fmt: skip
def test_wrong_fields_are_refused(
    fields: dict[str, Any], exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message):
        Patch(**fields)


def test_a_byte_is_held_at_what_it_can_be() -> None:
    for value, message in ((-1, "value to be at least 0"), (256, "value to be at most 255")):
        with pytest.raises(ValueError, match=message):
            Patch.hold(3, value)


def test_wrong_patches_are_refused_before_an_engine_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cule.env.consoles.Engine", None)
    with pytest.raises(ValueError, match="a modification of 'breakout'"):
        cule.AtariEnv(["pong", "breakout"], 2, "cpu", patches="up_drift")


@pytest.mark.parametrize(
    ("arguments", "exception", "message"),
    [
        ((128, 0), ValueError, "addresses to be from 0 to 127, got 128"),
        (([1, 1], 0), ValueError, r"addresses, each once, got \[1, 1\]"),
        ((1.5, 0), TypeError, "addresses to be integers, got 1.5"),
        ((1, 256), ValueError, "values to be from 0 to 255, got 256"),
        ((1, [0.5, 1]), TypeError, "values to be integers, got "),
        ((1, [1, 2, 3]), ValueError, r"shape \(\), \(1,\) or \(2, 1\) for 2 envs and 1 addresses"),
        (([1, 2], 0, [0, 0]), ValueError, r"each env once, got env_ids \[0, 0\]"),
    ],
)
def test_wrong_bytes_are_refused(
    arguments: tuple[Any, ...], exception: type[Exception], message: str
) -> None:
    env = make(2)
    before = env.get_ram()
    with pytest.raises(exception, match=message):
        env.set_ram(*arguments)
    np.testing.assert_array_equal(env.get_ram(), before)


def test_ram_is_written_after_a_reset_only() -> None:
    env = cule.AtariEnv("pong", 1, "cpu", reset_pool_size=1, num_threads=1)
    env.set_patches(HELD)
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"reset\(\) before the first set_ram"):
        env.set_ram(0, 0)
    env.close()
    for call in (lambda: env.set_ram(0, 0), lambda: env.set_patches(None)):
        with pytest.raises(gymnasium.error.ClosedEnvironmentError):
            call()
