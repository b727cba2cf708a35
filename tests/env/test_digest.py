"""The program that compares two devices: it finds every difference, and only differences."""

from __future__ import annotations

import pytest
import torch
from rollouts import make

import cule
from tests import digest


def test_equal_runs_have_equal_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--devices", "cpu", "cpu", "--envs", "2", "--steps", "12", "--pool", "2"]
    assert digest.main(["pong", "air_raid", "--threads", "1", *arguments]) == 0
    assert "0 of 4 envs differ on cpu and cpu in 12 steps" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["obs", "reward", "terminated", "lives", "ram"])
def test_a_single_difference_is_seen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    envs = [make("pong", 3), make("pong", 3)]
    step, ram = envs[1].step, envs[1].get_ram

    def changed_step(actions: torch.Tensor) -> tuple:
        obs, reward, terminated, truncated, info = step(actions)
        obs, reward, terminated = obs.clone(), reward.clone(), terminated.clone()
        if what == "obs":
            obs[1, -1, 83, 83] ^= 1
        elif what == "reward":
            reward[1] += 1
        elif what == "terminated":
            terminated[1] = ~terminated[1]
        elif what == "lives":
            info = {**info, "lives": info["lives"].clone()}
            info["lives"][1] += 1
        return obs, reward, terminated, truncated, info

    def changed_ram() -> torch.Tensor:
        seen = ram().clone()
        if what == "ram":
            seen[1, 127] ^= 128
        return seen

    monkeypatch.setattr(envs[1], "step", changed_step)
    monkeypatch.setattr(envs[1], "get_ram", changed_ram)
    differed, _ = digest.compare(envs, 2)
    assert differed.tolist() == [False, True, False]


def test_the_factors_leave_no_value_out() -> None:
    """An even factor would lose a value's highest bits."""
    env = cule.AtariEnv("pong", 2, device="cpu", num_threads=1, reset_pool_size=2)
    env.reset(seed=0)
    numbers = digest.Digest()
    numbers.of(env, env.step(torch.zeros(2, dtype=torch.int64)))
    assert numbers._factors
    assert all(bool((factor % 2 != 0).all()) for factor in numbers._factors.values())
