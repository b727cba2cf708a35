"""Objects as observations; that boxes are right is tests/differential's and tests/kernels'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

import cule
from cule.adapters.torchrl import AtariTorchRLEnv
from cule.console import console
from cule.engine import layout, start_states
from cule.env.flights import Flights
from cule.facts.objects import FIELDS, MOST_OBJECTS, kinds_of, object_facts

OPTIONS: dict[str, Any] = {"device": "cpu", "reset_pool_size": 2, "num_threads": 1}
SHAPE = (MOST_OBJECTS, len(FIELDS))


def make(game: str = "pong", num_envs: int = 3, obs_type: Any = "objects", **options: Any) -> Any:
    return cule.AtariEnv(game, num_envs, obs_type=obs_type, **(OPTIONS | options))


def test_pongs_objects() -> None:
    env = make()
    env.reset(seed=1)
    for _ in range(60):
        observations = env.step([0, 2, 3])[0]
    kinds = cule.objects("pong")
    assert kinds[0] == "unknown" and {"player", "enemy", "ball"} < set(kinds)
    ys = env.get_ram()[:, [51, 50]]  # of the player and the enemy
    for rows, its in zip(observations.tolist(), ys.tolist(), strict=True):
        found = {kinds[row[0]]: row for row in rows if row[-1]}
        assert found["player"][1] == 140 and found["enemy"][1] == 16
        assert abs(found["player"][2] - its[0]) < 30 and found["player"][3] == 4
    assert (observations[..., -1] <= 3).all()
    used = (observations[..., -1] > 0).sum(1)
    for rows, count in zip(observations, used.tolist(), strict=True):
        assert (rows[:count, -1] > 0).all() and (rows[count:] == 0).all()


@pytest.mark.parametrize("output", ["torch", "torch_shared", "numpy"])
@pytest.mark.parametrize("sound", [False, True])
def test_several_parts_at_once(output: str, sound: bool) -> None:
    env = make("breakout", obs_type=("image", "ram", "objects"), output=output, sound_obs=sound)
    observations, info = env.reset(seed=1)
    assert list(observations) == ["image", "ram", "objects", *["sound"] * sound]
    assert env.single_observation_space["objects"] == Box(0, 255, SHAPE, np.int16)
    assert set(env.single_observation_space) == set(observations)
    if output == "numpy":
        assert observations in env.observation_space
    for _ in range(5):
        observations, _, _, _, info = env.step([1, 2, 3])
    for name, wanted in (("ram", env.get_ram()), ("objects", env.get_objects())):
        assert (np.asarray(observations[name]) == np.asarray(wanted)).all()
    assert (np.asarray(info["objects_left_out"]) == 0).all()
    assert (np.asarray(env.get_objects([2, 0])) == np.asarray(env.get_objects())[[2, 0]]).all()


def test_pool_and_emulation_start_with_the_same_objects() -> None:
    """An emulated start sees each frame, and the pool holds the boxes of the last two."""
    pool, emulated = (
        make("space_invaders", 1, noop_max=1, reset_pool_size=size) for size in (1, 0)
    )
    first, other = pool.reset(seed=3)[0], emulated.reset(seed=3)[0]
    assert torch.equal(first, other) and (first[..., -1] > 0).sum() > 30
    assert torch.equal(pool.step([1])[0], emulated.step([1])[0])


def test_a_frame_at_a_time_sees_the_same() -> None:
    """The list has the last two frames, also if they are of two steps."""
    four, one = make("asteroids", 2, frameskip=4), make("asteroids", 2, frameskip=1)
    options = {"reset_mask": [True, True]}
    four.reset(seed=5, options=options)
    one.reset(seed=5, options=options)
    for _ in range(20):
        wanted = four.step([0, 1])[0]
        for _ in range(4):
            found = one.step([0, 1])[0]
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_ends_of_episodes(mode: str) -> None:
    options = {"autoreset_mode": mode, "max_num_frames_per_episode": 40, "noop_max": 1}
    env = make("freeway", 2, reset_pool_size=1, **options)
    first, _ = env.reset(seed=1)
    for _ in range(10):
        before = env.get_objects()
        observations, _, _, truncated, info = env.step([1, 1])
    assert truncated.all()
    if mode == "next_step":
        observations = env.step([1, 1])[0]
    else:
        assert not torch.equal(info["final_obs"], first)
        assert not torch.equal(info["final_obs"], before)
    assert torch.equal(observations, first)


def test_states_hold_objects() -> None:
    env, plain = make(), make(obs_type=("image", "ram"))
    env.reset(seed=1)
    plain.reset(seed=1)
    env.step([2, 3, 2])
    state, objects = env.clone_state(), env.get_objects()
    wanted = env.step([0, 0, 0])[0]
    env.restore_state(state)
    assert torch.equal(env.get_objects(), objects)
    assert torch.equal(env.step([0, 0, 0])[0], wanted)
    env.restore_state(plain.clone_state())
    assert (env.get_objects() == 0).all()
    both = make(obs_type=("image", "objects"))
    both.reset(seed=1)
    plain.restore_state(both.clone_state())
    state.tensors["boxes"][1, 0, 0, 0] = 1000
    with pytest.raises(ValueError, match="impossible value in boxes"):
        env.restore_state(state)


def test_smaller_batches_flights_and_compiled_steps() -> None:
    parts = ("image", "objects")
    whole, some, flown, traced = (make("pong", 3, parts, batch_size=size) for size in (0, 2, 0, 0))
    for env in (whole, flown, traced):
        env.reset(seed=1)
    observed, info = some.reset(seed=1)
    assert observed["objects"].shape == (2, *SHAPE) and len(info["objects_left_out"]) == 2
    flights = Flights(flown)
    step = torch.compile(lambda actions: traced.step(actions), backend="eager", fullgraph=True)
    for number in range(8):
        actions = torch.full((3,), number % 4)
        wanted = whole.step(actions)[0]["objects"]
        flights.wait(flights.step([0, 2], actions[:2]))
        assert torch.equal(flights.results([0, 2])[0]["objects"], wanted[[0, 2]])
        found = step(actions)
        assert torch.equal(found[0]["objects"], wanted)
        assert (found[4]["objects_left_out"] == 0).all()


def test_what_does_not_fit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (layout, console, start_states):
        monkeypatch.setattr(module, "MOST_OBJECTS", 8)
    env = make("space_invaders", 1, reset_pool_size=3)
    observations, info = env.reset(seed=1)
    assert observations.shape == (1, 8, 7) and (observations[0, :, -1] > 0).all()
    assert info["objects_left_out"] > 0


def test_facts() -> None:
    games = [game for game in cule.list_games() if len(cule.objects(game)) > 1]
    assert len(games) > 40
    for game in games:
        facts, kinds = object_facts(game), kinds_of(game)
        rules, places = np.split(facts[1 : 1 + facts[0, 9] + facts[0, 10]], [facts[0, 9]])
        assert (rules[:, 3:11:2] <= rules[:, 4:11:2]).all()
        assert (rules[:, 17] < rules[:, 18]).all()
        assert (places[:, [6, 15, 24, 33]] > 0).all()  # which numbers are divided by
        assert (places[:, 39:41] > 0).all()
        assert (places[:, 49:66:5] <= places[:, 50:66:5]).all()
        assert {*rules[:, 0], *places[:, 0]} == set(range(1, len(kinds)))
    assert cule.objects("tetris") == ("unknown",)


def test_refusals() -> None:
    env = make(obs_type="image")
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"'objects' in obs_type for get_objects\(\)"):
        env.get_objects()
    for obs_type in ("objects", ("image", "ram")):
        with pytest.raises(ValueError, match="'image' or 'ram' for AtariTorchRLEnv"):
            AtariTorchRLEnv("pong", 2, "cpu", obs_type=obs_type)
