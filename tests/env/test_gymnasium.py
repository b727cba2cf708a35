"""cule's envs in gymnasium: made by it, checked by its checker, wrapped by its wrappers."""

from __future__ import annotations

import sys
from inspect import signature
from pathlib import Path
from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers

import cule

OPTIONS = {"device": "cpu", "num_threads": 1, "reset_pool_size": 2}


def make_vec(
    num_envs: int = 3, game: str = "Breakout", **options: Any
) -> gymnasium.vector.VectorEnv:
    return gymnasium.make_vec(
        f"cule/{game}Preprocessed-v5", num_envs=num_envs, **(OPTIONS | options)
    )


def play(env: gymnasium.vector.VectorEnv, steps: int) -> list[tuple[Any, ...]]:
    env.reset(seed=0)
    env.action_space.seed(0)
    return [env.step(env.action_space.sample()) for _ in range(steps)]


def entry_point(name: str) -> str:
    return str(gymnasium.spec(name).entry_point)


def test_every_game_is_registered() -> None:
    gymnasium.register_envs(ale_py)
    registered = {name for name in gymnasium.registry if name.startswith("cule/")}
    latest = {f"cule/{game.ale_id}-v5" for game in cule.games()}
    preprocessed = {name.replace("-v5", "Preprocessed-v5") for name in latest}
    assert {name for name in registered if name.endswith("-v5")} == latest | preprocessed
    assert {name.replace("cule/", "ALE/") for name in latest} <= set(gymnasium.registry)
    older = {
        name
        for name in gymnasium.registry
        if name.endswith(("-v0", "-v4")) and "ale_py" in entry_point(name)
    }
    assert {f"cule/{name}" for name in older} <= registered


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_made_env_says_how_it_resets(mode: AutoresetMode) -> None:
    env = make_vec(2, autoreset_mode=mode)
    assert env.spec.id == "cule/BreakoutPreprocessed-v5"
    assert env.metadata["autoreset_mode"] is mode
    assert env.num_envs == 2
    assert env.observation_space.shape == (2, 4, 84, 84)
    observations, info = env.reset(seed=0)
    assert observations in env.observation_space
    assert all(len(value) == 2 for value in info.values())
    env.close()
    assert env.unwrapped.closed


def test_made_env_gives_arrays_unless_it_is_asked_for_tensors() -> None:
    for options, kind in (
        ({}, np.ndarray),
        ({"output": "numpy"}, np.ndarray),
        ({"output": "torch"}, torch.Tensor),
    ):
        env = make_vec(2, **options)
        assert isinstance(env.reset(seed=0)[0], kind)
        assert all(isinstance(value, kind) for value in env.step([0, 0])[:4])
    assert isinstance(cule.AtariEnv("pong", 1, **OPTIONS).reset(seed=0)[0], torch.Tensor)


def test_made_env_has_no_render_mode_unless_one_is_asked_for() -> None:
    env = make_vec(3)
    assert env.render_mode is None
    with pytest.warns(
        UserWarning, match=r"render\(\) shows nothing, as the env was made with render_mode=None"
    ):
        assert env.render() is None
    again = gymnasium.make_vec(env.spec)
    assert (again.num_envs, again.unwrapped.games, again.render_mode) == (3, env.games, None)
    with pytest.raises(TypeError, match="got 'render_modes'; did you mean render_mode"):
        make_vec(1, render_modes=None)


def test_infos_have_masks() -> None:
    env = make_vec()
    infos = [env.reset(seed=0)[1], env.step([0, 0, 0])[4]]
    for info in infos:
        keys = {key for key in info if not key.startswith("_")}
        assert {key for key in info if key.startswith("_")} == {f"_{key}" for key in keys}
        assert all(info[f"_{key}"].all() and info[f"_{key}"].dtype == np.bool_ for key in keys)
    assert {"lives", "raw_reward"} <= set(infos[1])


def test_vector_env_of_ales_version_means_what_ales_does() -> None:
    """Sticky actions are drawn from other random numbers, so the results are compared without."""
    same = {"num_envs": 2, "repeat_action_probability": 0.0, "max_num_frames_per_episode": 200}
    theirs = gymnasium.make_vec("ALE/Breakout-v5", **same)
    ours = gymnasium.make_vec("cule/Breakout-v5", **same, **(OPTIONS | {"reset_pool_size": 0}))
    assert theirs.single_observation_space == ours.single_observation_space
    assert theirs.single_action_space == ours.single_action_space
    np.testing.assert_array_equal(theirs.reset(seed=3)[0], ours.reset(seed=3)[0])
    ours.action_space.seed(0)
    for _ in range(120):
        actions = ours.action_space.sample()
        for a, b in zip(theirs.step(actions)[:4], ours.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(a, b)
    sticky = {name: make_vec_of(f"cule/{name}-v5") for name in ("Breakout", "BreakoutPreprocessed")}
    assert sticky["Breakout"].engine.options.repeat_action_probability == 0.25
    assert sticky["BreakoutPreprocessed"].engine.options.repeat_action_probability == 0


def make_vec_of(name: str) -> Any:
    return gymnasium.make_vec(name, num_envs=1, **OPTIONS).unwrapped


def test_ids_of_ales_version_say_what_ales_say() -> None:
    """What AtariEnv has by default, the id does not repeat."""
    gymnasium.register_envs(ale_py)
    defaults = {
        name: parameter.default for name, parameter in signature(cule.AtariEnv).parameters.items()
    }
    for game in cule.games():
        theirs = gymnasium.registry.get(f"ALE/{game.ale_id}-v5")
        if theirs is None:  # ale-py registers no games for two
            continue
        ours = gymnasium.spec(f"cule/{game.ale_id}-v5")
        kept = ("max_episode_steps", "order_enforce", "disable_env_checker", "nondeterministic")
        assert [getattr(ours, name) for name in kept] == [getattr(theirs, name) for name in kept]
        assert {name: (defaults | ours.kwargs)[name] for name in theirs.kwargs} == theirs.kwargs


def test_specs_make_the_same_envs_again() -> None:
    env = gymnasium.make("cule/Pong-v5", frameskip=3, device="cpu")
    again = gymnasium.make(env.spec)
    assert again.spec == env.spec
    assert again.unwrapped.env.engine.options == env.unwrapped.env.engine.options
    np.testing.assert_array_equal(env.reset(seed=1)[0], again.reset(seed=1)[0])
    many = gymnasium.make_vec("cule/Pong-v5", num_envs=2, frameskip=3, **OPTIONS)
    for spec in (many.spec, many.unwrapped.spec):
        copy = gymnasium.make_vec(spec)
        assert copy.spec == spec
        assert copy.unwrapped.engine.options == many.unwrapped.engine.options
        np.testing.assert_array_equal(many.reset(seed=1)[0], copy.reset(seed=1)[0])


def test_single_env_plays_as_the_vector_env_does() -> None:
    """So does gymnasium's own vector env of single envs, as long as no episode ends."""
    options = OPTIONS | {"reset_pool_size": 0}
    many = SyncVectorEnv([lambda: gymnasium.make("cule/PongPreprocessed-v5", **options)] * 2)
    ours = make_vec(2, "Pong", **options)
    assert data_equivalence(many.reset(seed=3)[0], ours.reset(seed=3)[0])
    for _ in range(20):
        actions = ours.action_space.sample()
        a, b = many.step(actions), ours.step(actions)
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[1], b[1])
        np.testing.assert_array_equal(a[4]["frame_number"], b[4]["frame_number"])


def test_single_env_stays_at_its_end() -> None:
    env = gymnasium.make("cule/PongPreprocessed-v5", max_num_frames_per_episode=20, **OPTIONS)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(5)]
    assert ends[-1] == (False, True)
    env.reset()
    assert env.step(0)[2:4] == (False, False)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_record_episode_statistics_counts_what_was_played(mode: str) -> None:
    env = wrappers.RecordEpisodeStatistics(
        make_vec(3, max_num_frames_per_episode=60, autoreset_mode=mode, reward_clipping=False)
    )
    total = np.zeros(3)
    for _, reward, terminated, truncated, info in play(env, 60):
        total += reward
        done = terminated | truncated
        assert ("episode" in info) == done.any()
        if done.any():
            np.testing.assert_array_equal(info["_episode"], done)
            np.testing.assert_array_equal(info["episode"]["r"][done], total[done])
            assert (info["episode"]["l"][done] > 5).all()
            total[done] = 0
    assert env.episode_count >= 9


def test_other_vector_wrappers_take_the_env() -> None:
    env = wrappers.DictInfoToList(make_vec())
    infos = play(env, 3)[-1][4]
    assert [info["env_id"] for info in infos] == [0, 1, 2]
    env = wrappers.NormalizeReward(wrappers.ClipReward(make_vec(3), -1, 1))
    assert all(step[1].dtype.kind == "f" for step in play(env, 40))
    env = wrappers.FlattenObservation(make_vec(2))
    assert play(env, 2)[-1][0].shape == (2, 4 * 84 * 84)
    env = wrappers.NormalizeObservation(make_vec(2, obs_type="ram"))
    assert abs(play(env, 30)[-1][0].mean()) < 5
    env = wrappers.TransformReward(make_vec(2), lambda reward: reward * 0 + 2)
    assert play(env, 1)[0][1].tolist() == [2, 2]


def test_render_mode_of_gymnasium_gives_one_picture_an_env() -> None:
    env = make_vec(3, render_mode="rgb_array")
    env.reset(seed=0)
    frames = env.render()
    assert [frame.shape for frame in frames] == [(210, 320, 3)] * 3
    mosaic = make_vec(3, render_mode="mosaic")
    mosaic.reset(seed=0)
    np.testing.assert_array_equal(mosaic.render()[:210, 320:], frames[1])


@pytest.mark.skipif(
    not hasattr(wrappers, "RecordVideo"), reason="gymnasium records vector envs from 1.2.1 on"
)
def test_gymnasium_records_a_video(tmp_path: Path) -> None:
    env = wrappers.RecordVideo(
        make_vec(2, render_mode="rgb_array"), str(tmp_path / "videos"), video_length=12, fps=15
    )
    play(env, 15)
    env.close()
    (path,) = (tmp_path / "videos").glob("*.mp4")
    video = cv2.VideoCapture(str(path))
    # The first frame and those of 12 steps. moviepy adds up their times and rounds down, which
    # loses the last frame where Python's sum is not exact.
    exact = sys.version_info >= (3, 12)
    assert int(video.get(cv2.CAP_PROP_FRAME_COUNT)) == (13 if exact else 12)


@pytest.mark.parametrize("options", [{"output": "torch"}, {"autoreset_mode": "NextStep"}], ids=str)
def test_keywords_that_one_console_sets_are_refused(options: dict[str, str]) -> None:
    (name,) = options
    with pytest.raises(TypeError, match=f"expected no {name} for SingleAtariEnv, as "):
        gymnasium.make("cule/PongPreprocessed-v5", **options)
