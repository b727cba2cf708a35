"""The env of one console under the wrappers that people put around ale-py's."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import SyncVectorEnv
from single_envs import assert_plays_the_same, pair

pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")


def test_atari_preprocessing_gives_what_it_gives_around_ale() -> None:
    options: list[dict[str, Any]] = [
        {"terminal_on_life_loss": True},
        {"grayscale_obs": False, "screen_size": (96, 72)},
    ]
    for wrapped in options:
        theirs, ours = (
            wrappers.AtariPreprocessing(env, **wrapped) for env in pair("BreakoutNoFrameskip-v4")
        )
        assert_plays_the_same(theirs, ours, 120)


def test_atari_preprocessing_hears_of_the_frameskip() -> None:
    wrappers.AtariPreprocessing(gymnasium.make("cule/Pong-v5", frameskip=1))
    for frameskip in (4, (2, 5)):
        with pytest.raises(ValueError, match="Disable frame-skipping"):
            wrappers.AtariPreprocessing(
                gymnasium.make("cule/Pong-v5", frameskip=frameskip, obs_type="rgb")
            )


def test_atari_preprocessing_of_what_is_preprocessed_says_so() -> None:
    env = wrappers.AtariPreprocessing(gymnasium.make("cule/PongPreprocessed-v5", frameskip=1))
    with pytest.raises(
        ValueError, match=r"shape \(210, 160\) .* \(4, 84\); .* with obs_type='rgb'"
    ):
        env.reset(seed=0)


def test_make_atari_env_of_stable_baselines3_gives_what_it_gives_around_ale() -> None:
    env_util = pytest.importorskip("stable_baselines3.common.env_util")
    names = ("BreakoutNoFrameskip-v4", "cule/BreakoutNoFrameskip-v4")
    theirs, ours = (env_util.make_atari_env(name, n_envs=2, seed=3) for name in names)
    np.testing.assert_array_equal(theirs.reset(), ours.reset())
    rng, ends = np.random.default_rng(0), 0
    for _ in range(150):
        actions = rng.integers(theirs.action_space.n, size=2)
        a, b = theirs.step(actions), ours.step(actions)
        for mine, its in zip(a[:3], b[:3], strict=True):
            np.testing.assert_array_equal(mine, its)
        ends += int(a[2].sum())
    assert ends > 2
    assert ours.render().shape == (2 * 210, 320, 3)


def cleanrl_env(name: str) -> Callable[[], gymnasium.Env]:
    """The env that CleanRL's ppo_atari.py (commit fe8d8a0) makes from an id, with its wrappers
    in order."""
    from stable_baselines3.common import atari_wrappers

    def make() -> gymnasium.Env:
        env: gymnasium.Env = wrappers.RecordEpisodeStatistics(gymnasium.make(name))
        env = atari_wrappers.MaxAndSkipEnv(atari_wrappers.NoopResetEnv(env, noop_max=30), skip=4)
        env = atari_wrappers.EpisodicLifeEnv(env)
        if "FIRE" in env.unwrapped.get_action_meanings():
            env = atari_wrappers.FireResetEnv(env)
        env = wrappers.ResizeObservation(atari_wrappers.ClipRewardEnv(env), (84, 84))
        return wrappers.FrameStackObservation(wrappers.GrayscaleObservation(env), 4)

    return make


def test_cleanrl_gives_what_it_gives_around_ale() -> None:
    pytest.importorskip("stable_baselines3")
    names = ("BreakoutNoFrameskip-v4", "cule/BreakoutNoFrameskip-v4")
    theirs, ours = (SyncVectorEnv([cleanrl_env(name)] * 2) for name in names)
    assert ours.observation_space == theirs.observation_space
    assert ours.single_action_space == theirs.single_action_space
    np.testing.assert_array_equal(theirs.reset(seed=1)[0], ours.reset(seed=1)[0])
    rng, ends = np.random.default_rng(0), 0
    for _ in range(150):
        actions = rng.integers(4, size=2)
        a, b = theirs.step(actions), ours.step(actions)
        for mine, its in zip(a[:4], b[:4], strict=True):
            np.testing.assert_array_equal(mine, its)
        if "episode" in a[4]:
            np.testing.assert_array_equal(a[4]["episode"]["r"], b[4]["episode"]["r"])
            np.testing.assert_array_equal(a[4]["episode"]["l"], b[4]["episode"]["l"])
        ends += int(a[2].sum())
    assert ends > 2


def test_gymnasium_plays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test presses the keys, in a window that is not visible."""
    pygame = pytest.importorskip("pygame")
    monkeypatch.setitem(os.environ, "SDL_VIDEODRIVER", "dummy")
    from gymnasium.utils.play import play

    actions = []

    def played(before: Any, after: Any, action: int, *_: Any) -> None:
        actions.append(action)
        if len(actions) == 3:
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE))
        if len(actions) == 6:
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_d))
        if len(actions) == 9:
            pygame.event.post(pygame.event.Event(pygame.QUIT))

    env = gymnasium.make("cule/PongNoFrameskip-v4", render_mode="rgb_array")
    meanings = env.unwrapped.get_action_meanings()
    play(env, callback=played, fps=1000)
    assert [meanings[action] for action in (actions[0], actions[4], actions[7])] == [
        "NOOP",
        "FIRE",
        "RIGHTFIRE",
    ]


def test_gymnasium_collects_pictures() -> None:
    env = gymnasium.make("cule/Pong-v5", render_mode="rgb_array_list")
    env.reset(seed=0)
    for _ in range(3):
        env.step(0)
    frames = env.render()
    assert [frame.shape for frame in frames] == [(210, 320, 3)] * 4
    assert env.render() == []


def test_window_shows_each_reset_and_step(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown: list[tuple[int, ...]] = []
    monkeypatch.setattr(
        "cule.env.window.Window.show", lambda self, picture: shown.append(picture.shape)
    )
    env = gymnasium.make("cule/Pong-v5", render_mode="human")
    env.reset(seed=0)
    for _ in range(3):
        env.step(0)
    assert env.render() is None
    assert shown == [(210, 320, 3)] * 4
    env.close()


def test_gymnasium_makes_many_of_older_ids() -> None:
    """gymnasium's own vector env makes them, as it does with ale-py's ids."""
    theirs, ours = (
        gymnasium.make_vec(name, num_envs=2)
        for name in ("PongNoFrameskip-v4", "cule/PongNoFrameskip-v4")
    )
    np.testing.assert_array_equal(theirs.reset(seed=1)[0], ours.reset(seed=1)[0])
    np.testing.assert_array_equal(theirs.step([2, 3])[0], ours.step([2, 3])[0])
