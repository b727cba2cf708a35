"""Steps under torch.compile: one graph, the same results."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch

import cule

ENVS = 3
BACKENDS = [
    "eager",
    "aot_eager",
    pytest.param(
        "inductor", marks=pytest.mark.skipif(not shutil.which("g++"), reason="it needs a compiler")
    ),
]
OPTIONS = [
    {}, {"autoreset_mode": "SameStep", "max_num_frames_per_episode": 40}, {"continuous": True},
    {"obs_type": "ram"}, {"repeat_action_probability": 0.25},
]  # fmt: skip


def started(device: str, **options: Any) -> cule.AtariEnv:
    env = cule.AtariEnv(
        "breakout", ENVS, device=device, num_threads=1, reset_pool_size=2, **options
    )
    env.reset(seed=0)
    return env


@pytest.fixture(autouse=True)
def no_graphs_of_before() -> None:
    torch._dynamo.reset()


def play(env: cule.AtariEnv, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Two steps. The results of the first are not used."""
    env.step(actions)
    observations, rewards, terminated, truncated, info = env.step(actions)
    return observations.float().mean() + rewards.sum(), terminated.clone(), truncated.clone(), info


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options), "plain"))
def test_step_is_one_graph_with_the_results_of_the_plain_one(
    options: dict[str, Any], device: str
) -> None:
    compare(options, device, "eager")


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_step_is_one_graph_for_every_compiler(backend: str, device: str) -> None:
    compare({}, device, backend)


def compare(options: dict[str, Any], device: str, backend: str) -> None:
    plain, compiled = started(device, **options), started(device, **options)
    graph = torch.compile(play, fullgraph=True, backend=backend)
    random = torch.Generator().manual_seed(0)
    for _ in range(15):
        actions = torch.randint(4, (ENVS,), generator=random)
        if options.get("continuous"):
            actions = torch.rand(ENVS, 3, generator=random)
        *expected, expected_info = play(plain, actions.to(device))
        *results, info = graph(compiled, actions.to(device))
        torch.testing.assert_close(results, expected)
        for key, value in expected_info.items():
            assert torch.equal(info[key], value), key
        assert set(info) - set(expected_info) <= {"final_obs", "_final_obs"}
    states = plain.clone_state(), compiled.clone_state()
    assert all(
        torch.equal(states[0].tensors[name], part) for name, part in states[1].tensors.items()
    )


def test_one_graph_plays_the_env_that_it_is_given() -> None:
    """The envs have other games, numbers and sizes. Each is compiled once."""
    graph = torch.compile(play, fullgraph=True, backend="eager")
    for game, envs, size in (("pong", 2, 84), ("qbert", 2, 84), ("pong", 3, 84), ("pong", 2, 42)):
        pair = [
            cule.AtariEnv(
                game, envs, device="cpu", num_threads=1, reset_pool_size=2, img_height=size
            )
            for _ in range(2)
        ]
        for env in pair:
            env.reset(seed=1)
        actions = torch.ones(envs, dtype=torch.int64)
        torch.testing.assert_close(graph(pair[0], actions)[:3], play(pair[1], actions)[:3])


def test_compiled_step_says_what_is_wrong() -> None:
    env = started("cpu")
    graph = torch.compile(lambda actions: env.step(actions)[1], fullgraph=True, backend="eager")
    with pytest.raises(ValueError, match="expected actions from 0 to 3, got values from 99 to 99"):
        graph(torch.full((ENVS,), 99))
    graph(torch.zeros(ENVS, dtype=torch.int64))
    env.close()
    with pytest.raises(Exception, match="expected an open env"):
        graph(torch.zeros(ENVS, dtype=torch.int64))


def test_compiled_step_of_an_env_that_gives_arrays_says_so() -> None:
    env = started("cpu", output="numpy")
    graph = torch.compile(lambda actions: env.step(actions), fullgraph=True, backend="eager")
    with pytest.raises(
        Exception,
        match=r"expected an env with output='torch' under torch.compile, got output='numpy'",
    ):
        graph(torch.zeros(ENVS, dtype=torch.int64))


def test_second_players_actions_are_compiled() -> None:
    plain, compiled = (
        cule.AtariEnv("pong", 2, device="cpu", num_threads=1, mode=1) for _ in range(2)
    )
    for env in (plain, compiled):
        env.reset(seed=0)
    graph = torch.compile(lambda a, b: compiled.step(a, b)[0], fullgraph=True, backend="eager")
    actions, others = torch.tensor([1, 3]), torch.tensor([4, 17])
    for _ in range(5):
        assert torch.equal(graph(actions, others), plain.step(actions, others)[0])
