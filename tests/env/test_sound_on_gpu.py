"""Sound on a GPU: each sample equals the CPU's, interpreted and compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import cule

pytestmark = pytest.mark.gpu
GAMES = ("asteroids", "pitfall2", "pong", "space_invaders")


def play(envs: list[cule.AtariEnv], steps: int) -> int:
    """Plays and compares; returns in how many steps of an env there was sound."""
    generator, heard = torch.Generator().manual_seed(2), 0
    observed = [env.reset(seed=5)[0] for env in envs]
    for step in range(steps):
        first = observed[0]
        for other in observed[1:]:
            for name in ("image", "sound"):
                assert torch.equal(first[name].cpu(), other[name].cpu()), (step, name)
        heard += int((first["sound"] > 128).any(1).sum())
        actions = torch.randint(
            envs[0].single_action_space.n, (envs[0].num_envs,), generator=generator
        )
        observed = [env.step(actions.to(env.device))[0] for env in envs]
        sounds = [env.get_sound().cpu() for env in envs]
        assert all(torch.equal(sounds[0], other) for other in sounds[1:]), step
    return heard


@pytest.mark.parametrize("pool", [0, 4])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_all_ways_of_resetting_sound_as_on_a_cpu(mode: str, pool: int) -> None:
    options: dict[str, Any] = {
        "sound_obs": True, "autoreset_mode": mode, "reset_pool_size": pool, "noop_max": 4,
        "max_num_frames_per_episode": 200, "repeat_action_probability": 0.25,
    }  # fmt: skip
    envs = [cule.AtariEnv(GAMES, 20, device=device, **options) for device in ("cpu", "cuda")]
    assert play(envs, 150) > 100


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("num_envs", [64, 2048])
def test_compiled_games_sound_as_on_a_cpu(game: str, num_envs: int) -> None:
    """With warps that wait for each other and without."""
    options: dict[str, Any] = {"sound_obs": True, "max_num_frames_per_episode": 300}
    envs = [
        cule.AtariEnv(game, num_envs, device=device, translate=translate, **options)
        for device, translate in (("cpu", None), ("cuda", True), ("cuda", False))
    ]
    assert envs[1].translated
    assert play(envs, 100) > 100


def test_sound_can_be_captured_in_a_graph() -> None:
    captured = cule.AtariEnv("space_invaders", 8, "cuda", sound_obs=True, output="torch_shared")
    plain = cule.AtariEnv("space_invaders", 8, "cuda", sound_obs=True)
    captured.reset(seed=1)
    plain.reset(seed=1)
    actions = torch.zeros(8, dtype=torch.int32, device="cuda")
    for _ in range(3):
        captured.step(actions)
        plain.step(actions)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        observed = captured.step(actions)[0]
    heard = 0
    for _ in range(150):
        graph.replay()
        assert torch.equal(observed["sound"], plain.step(actions)[0]["sound"])
        heard += int((observed["sound"] > 128).any())
    assert heard
