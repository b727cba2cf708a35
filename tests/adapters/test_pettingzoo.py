"""cule.adapters.pettingzoo passes PettingZoo's own tests; its names mean what PettingZoo's do."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from cule.facts.pettingzoo_names import PETTINGZOO_NAMES
from cule.rom import find_game

pytest.importorskip("pettingzoo", reason="needs pettingzoo")

from pettingzoo import test as pettingzoo_test
from pettingzoo.utils import parallel_to_aec

from cule.adapters.pettingzoo import VectorParallelEnv, parallel_env


@pytest.mark.parametrize(
    ("name", "obs_type"),
    [("pong_v3", "rgb_image"), ("quadrapong_v4", "ram"), ("boxing", "grayscale_image"),
     ("wizard_of_wor_v3", "image")],
)  # fmt: skip
def test_parallel_api(name: str, obs_type: Any, recwarn: pytest.WarningsRecorder) -> None:
    pettingzoo_test.parallel_api_test(parallel_env(name, obs_type=obs_type), num_cycles=150)
    assert not [str(one.message) for one in recwarn if one.category is UserWarning]


def test_aec_by_pettingzoos_conversion() -> None:
    env = parallel_to_aec(parallel_env("pong_v3", obs_type="ram"))
    pettingzoo_test.api_test(env, num_cycles=50)


def test_seeds() -> None:
    pettingzoo_test.parallel_seed_test(
        lambda: parallel_env("pong_v3", obs_type="ram", repeat_action_probability=0.25),
        num_cycles=20,
    )


@pytest.mark.parametrize("name", sorted(PETTINGZOO_NAMES))
def test_names_mean_what_pettingzoos_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PettingZoo's modules are asked with which arguments they make their console."""
    base = types.ModuleType("pettingzoo.atari.base_atari_env")
    base.__dict__.update(
        AtariAECEnv=object, BaseAtariEnv=lambda **given: given, ParallelAtariEnv=object,
        base_env_wrapper_fn=lambda make: make, parallel_wrapper_fn=lambda make: make,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, base.__name__, base)
    folder = name.rpartition("_")[0]
    module = f"pettingzoo.atari.{folder}.{folder}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    make = importlib.import_module(module).raw_env
    monkeypatch.delitem(sys.modules, module)
    game, modes = PETTINGZOO_NAMES[name]
    default = make()
    for players, mode in modes.items():
        got = make(num_players=players) if len(modes) > 1 else default
        assert (got["game"], got["num_players"], got["mode_num"]) == (game, players, mode)
        assert got["env_name"] == name
        assert mode is None or mode in find_game(game, players).modes
    assert default["num_players"] == next(iter(modes))


def test_agents_observations_and_ends() -> None:
    env = parallel_env("pong_v3", render_mode="rgb_array", max_cycles=3)
    assert env.possible_agents == ["first_0", "second_0"] and env.metadata["name"] == "pong_v3"
    observations, infos = env.reset(seed=1)
    assert observations["first_0"].shape == (210, 160, 3) == env.observation_space("first_0").shape
    assert np.array_equal(env.render(), observations["second_0"])
    assert infos == {"first_0": {"lives": 0}, "second_0": {"lives": 0}}
    for _ in range(3):
        _, rewards, ends, cuts, _ = env.step(dict.fromkeys(env.agents, 0))
    assert rewards == {"first_0": 0, "second_0": 0} and env.agents == []
    assert not any(ends.values()) and all(cuts.values())
    with pytest.raises(gymnasium.error.ResetNeeded, match="as no agent plays"):
        env.step({})


def test_an_agent_whose_player_is_out_leaves_and_the_others_play_on() -> None:
    env = parallel_env("wizard_of_wor_v3", obs_type="ram", frameskip=8)
    env.reset(seed=0)
    random = np.random.default_rng(0)
    while len(env.agents) == 2:
        actions = {agent: int(random.integers(9)) for agent in env.agents}
        _, _, ends, _, infos = env.step(actions)
    (left,) = env.agents
    (gone,) = {*env.possible_agents} - {left}
    assert ends == {gone: True, left: False} and infos[gone]["lives"] == -1
    with pytest.raises(ValueError, match=f"names of agents that play .{left}.*, got"):
        env.step({gone: 0})
    observations, rewards, *_ = env.step({left: 0})
    assert observations.keys() == rewards.keys() == {left}


def test_many_consoles_play_as_atari_envs_do(device: str) -> None:
    env = VectorParallelEnv("quadrapong_v4", 5, device, seed=3, reset_pool_size=2)
    assert env.agents == ["first_0", "second_0", "third_0", "fourth_0"]
    env.reset()
    generator = torch.Generator().manual_seed(0)
    other = VectorParallelEnv("pong", 5, device, num_players=4, mode=33, seed=3, reset_pool_size=2)
    other.reset()
    for _ in range(40):
        actions = torch.randint(6, (5, 4), generator=generator).to(env.device)
        columns = dict(zip(env.agents, actions.unbind(1), strict=True))
        observations, rewards, ends, cuts, infos = env.step(columns)
        seen, earned, terminated, truncated, _ = other.atari.step(actions)
        for i, agent in enumerate(env.agents):
            assert torch.equal(observations[agent], seen)
            assert torch.equal(rewards[agent], earned[:, i])
            assert torch.equal(ends[agent], terminated)
            assert torch.equal(cuts[agent], truncated)
            assert infos[agent]["lives"].shape == (5,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: parallel_env("quadrapong_v4", num_players=2),
            "expected num_players=4 for 'quadra",
        ),
        (lambda: parallel_env("pong", num_players=1), "expected num_players to be 2 or 4 for par"),
        (lambda: parallel_env("alien"), "expected num_players=1, which 'alien' is for, got 2"),
        (lambda: VectorParallelEnv("pong", 1, num_players=1), "2 or 4 for VectorParallelEnv, got"),
        (lambda: VectorParallelEnv("pong_v3", 1, "cpu").step({"first_0": 0}), "of all agents"),
        (lambda: parallel_env("pong", obs_type="rgb"), "expected obs_type to be"),
        (lambda: parallel_env("pong", num_players=0), "expected num_players to be at least 1, got"),
        (lambda: parallel_env("pong_v3", num_players=0), "num_players to be at least 1, got 0"),
        (lambda: parallel_env("pong_v3", frameskip=0), "expected frameskip to be at least 1, got"),
    ],
)
def test_what_is_not_there_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_keywords_that_the_adapter_sets_are_refused() -> None:
    with pytest.raises(TypeError, match="expected no stack_num for parallel_env, as obs_type"):
        parallel_env("pong", stack_num=4)
    for obs_type in ("rgb_image", "ram", "image"):
        with pytest.raises(TypeError, match="expected no sound_obs for parallel_env, as its obs"):
            parallel_env("pong_v3", obs_type=obs_type, sound_obs=True)
    with pytest.raises(TypeError, match="expected no output for VectorParallelEnv, as it gives"):
        VectorParallelEnv("pong", 1, output="numpy")
    with pytest.raises(TypeError, match="expected the name of a game, such as 'pong_v3', got 3"):
        parallel_env(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected frameskip to be an integer, got '4'"):
        parallel_env("pong_v3", frameskip="4")
    with pytest.raises(TypeError, match=r"expected num_players to be an integer, got \[2\]"):
        parallel_env("pong_v3", num_players=[2])  # type: ignore[arg-type]


def test_actions_that_are_no_integers_are_refused() -> None:
    env = parallel_env("pong_v3", obs_type="ram")
    env.reset(seed=1)
    for action in (2.9, True, np.bool_(1), torch.tensor(1.5), np.array([1])):
        with pytest.raises(TypeError, match="expected the action of first_0 to be an integer, got"):
            env.step({"first_0": action, "second_0": 0})
    for wrong in ("2", None, 2**70):
        with pytest.raises(TypeError, match="expected the action of second_0 to be an array of nu"):
            env.step({"second_0": wrong})
    with pytest.raises(ValueError, match="expected actions from 0 to 5, got values from 0 to 6"):
        env.step({"first_0": 6})
    for right in (2, np.uint8(2), np.array(2), torch.tensor(2)):
        env.step({"first_0": right, "second_0": 0})
