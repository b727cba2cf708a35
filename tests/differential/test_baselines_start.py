"""`episode_start="baselines"` plays what stable-baselines3's own AtariWrapper plays around ale-py:
the same observations, rewards, ends, RAM and lives, game after game and life after life.

Its WarpFrame is left out, as it computes grey values that differ from ale-py's by one: the colors
of whole screens are compared.
"""

from __future__ import annotations

from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest
from stable_baselines3.common import atari_wrappers
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

import cule

gymnasium.register_envs(ale_py)
OPTIONS: dict[str, Any] = {"episode_start": "baselines", "num_threads": 1}


def wrapped(game: str, seed: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> VecFrameStack:
    """stable-baselines3's env, with exactly one no-op."""
    monkeypatch.setattr(atari_wrappers, "WarpFrame", lambda env, width, height: env)

    def make() -> gymnasium.Env:
        console = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0)
        return atari_wrappers.AtariWrapper(console, noop_max=1, **options)

    envs = VecFrameStack(DummyVecEnv([make]), 4)
    envs.seed(seed)
    return envs


def ours(game: str, device: str, **options: Any) -> cule.AtariEnv:
    """The same in cule."""
    screen = cule.AtariEnv(game, 1, "cpu", num_threads=1, reset_pool_size=1)
    screen.reset()
    size = screen.render().shape
    return cule.AtariEnv(
        game, 1, device, noop_max=2, reset_pool_size=0, output="numpy", grayscale=False,
        img_height=size[0], img_width=160, autoreset_mode="same_step", **(OPTIONS | options),
    )  # fmt: skip


def frames(observation: np.ndarray) -> np.ndarray:
    """(4, height, 160, 3) of a stack whose frames are beside each other on the last axis."""
    height, width, channels = observation.shape
    return observation.reshape(height, width, channels // 3, 3).transpose(2, 0, 1, 3)


LONG = (
    ("Breakout", 250, 2, {}), ("MsPacman", 370, 1, {}), ("Seaquest", 250, 2, {}),
    ("SpaceInvaders", 250, 1, {}),
)  # fmt: skip
BRIEF = (
    ("Pong", 60, 0, {}), ("Breakout", 100, 0, {"frame_skip": 2}),
    ("Assault", 100, 0, {"frame_skip": 1}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("game", "steps", "least_ends", "options", "lives_end"),
    [
        *((*case, True) for case in (*LONG[:2], *BRIEF)),
        *((*case, False) for case in (LONG[0], *BRIEF)),
        *(pytest.param(*case, True, marks=pytest.mark.slow) for case in LONG[2:]),
        *(pytest.param(*case, False, marks=pytest.mark.slow) for case in LONG[1:]),
    ],
    ids=str,
)  # fmt: skip
def test_steps_are_stable_baselines3s(
    game: str, steps: int, least_ends: int, options: dict[str, Any], lives_end: bool, device: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    theirs = wrapped(game, 1, monkeypatch, terminal_on_life_loss=lives_end, **options)
    console = theirs.get_attr("unwrapped")[0].ale
    env = ours(game, device, life_loss_info=lives_end, frameskip=options.get("frame_skip", 4))
    np.testing.assert_array_equal(frames(theirs.reset()[0]), env.reset(seed=1)[0][0])
    rng, ends = np.random.default_rng(0), 0
    for step in range(steps):
        action = rng.integers(theirs.action_space.n, size=1)
        observations, rewards, dones, _ = theirs.step(action)
        obs, reward, terminated, truncated, info = env.step(action)
        assert (rewards[0], dones[0]) == (reward[0], terminated[0] | truncated[0]), step
        np.testing.assert_array_equal(frames(observations[0]), obs[0], err_msg=str(step))
        np.testing.assert_array_equal(console.getRAM(), env.get_ram()[0], err_msg=str(step))
        assert console.lives() == info["lives"][0], step
        assert console.getEpisodeFrameNumber() == info["episode_frame_number"][0], step
        ends += int(dones[0])
    assert ends >= least_ends or not lives_end


def test_policy_of_no_ops_loses_all_lives_of_breakout(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without FIRE after a lost life the game would stand still after the first."""
    theirs = wrapped("Breakout", 3, monkeypatch)
    env = ours("Breakout", device, life_loss_info=True)
    theirs.reset()
    env.reset(seed=3)
    ends: list[int] = []
    for step in range(400):
        dones, (_, _, terminated, _, _) = theirs.step(np.zeros(1, int))[2], env.step(np.array([0]))
        assert dones[0] == terminated[0], step
        ends += [step] * int(dones[0])
    assert len(ends) >= 5


@pytest.mark.parametrize("pool", [0, 3])
@pytest.mark.parametrize("episode_start", ["baselines", "envpool"])
def test_next_step_mode_starts_lives_in_steps_of_their_own(
    episode_start: str, pool: int, device: str
) -> None:
    """The same observations as in SAME_STEP, and the same statistics, though each start of a life
    or game is a step without an action."""
    played = []
    for mode in ("same_step", "next_step"):
        env = cule.AtariEnv(
            "breakout", 1, device, autoreset_mode=mode, life_loss_info=True, noop_max=4,
            reset_pool_size=pool, **(OPTIONS | {"episode_start": episode_start}),
        )  # fmt: skip
        counted = cule.EpisodeStatistics(env)
        counted.reset(seed=5)
        rng, seen = np.random.default_rng(2), []
        while len(seen) < 500:
            obs, reward, terminated, truncated, _ = counted.step(rng.integers(4, size=1))
            result = int(reward), bool(terminated)
            if mode == "next_step" and bool(terminated | truncated):
                obs, nothing, *ends, _ = counted.step([0])
                assert int(nothing) == 0 and not any(map(bool, ends))
            seen.append((obs.clone(), *result))
        assert int(counted.episode_count) >= 2
        played.append((seen, float(counted.mean_return), float(counted.mean_length)))
    (same, *same_means), (later, *later_means) = played
    assert same_means == later_means
    for one, other in zip(same, later, strict=True):
        assert one[0].equal(other[0]) and one[1:] == other[1:]


def test_explicit_reset_starts_a_game(device: str) -> None:
    env = cule.AtariEnv("breakout", 1, device, life_loss_info=True, reset_pool_size=2, **OPTIONS)
    env.reset(seed=0)
    for _ in range(200):
        if env.step([0])[2][0]:
            break
    assert int(env.reset()[1]["lives"]) == 5


def test_lives_are_not_started_where_nothing_is_reset() -> None:
    with pytest.raises(ValueError, match=r"^expected autoreset_mode NEXT_STEP or SAME_STEP with "):
        cule.AtariEnv("pong", 1, "cpu", life_loss_info=True, autoreset_mode="disabled", **OPTIONS)
