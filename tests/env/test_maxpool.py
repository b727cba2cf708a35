"""Observations that are the maximum of more than two frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cule

SIZE = {"img_height": 210, "img_width": 160, "stack_num": 1}
OPTIONS: dict[str, Any] = {
    "device": "cpu", "num_threads": 1, "reset_pool_size": 0, "output": "numpy", "noop_max": 0,
    **SIZE,
}  # fmt: skip


class Frames:
    """Steps of an env frame by frame. An oracle: it pools what other steps of one frame show."""

    def __init__(self, game: str, frameskip: int, pooled: int, **options: Any) -> None:
        self.env = cule.AtariEnv(game, 1, frameskip=1, maxpool=False, **options)
        self.frameskip, self.pooled, self.over = frameskip, pooled, True
        self.shown = np.zeros(0)

    def reset(self, **how: Any) -> np.ndarray:
        self.shown, self.over = self.env.reset(**how)[0], False
        return self.shown

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        """The observation, the reward, and whether the episode is over."""
        if self.over:
            self.over = False
            self.shown, *_ = self.env.step(np.array([action]))
            return self.shown, 0.0, False
        seen, reward = [], 0.0
        for frame in range(self.frameskip):
            picture, gained, terminated, truncated, _ = self.env.step(np.array([action]))
            reward += gained[0]
            self.over = bool(terminated[0] or truncated[0])
            # As in ale-py, the frame at which an episode ends is not looked at.
            if frame >= self.frameskip - self.pooled and not self.over:
                seen.append(picture)
            if self.over:
                break
        if self.over and seen:
            seen.append(self.shown)
        if seen:
            self.shown = np.max(seen, axis=0)
        return self.shown, reward, self.over


@pytest.mark.parametrize("grayscale", [True, False])
@pytest.mark.parametrize(
    ("game", "frameskip", "pooled"),
    [("asteroids", 4, 4), ("space_invaders", 4, 3), ("pong", 3, 3), ("pitfall2", 6, 5),
     ("kangaroo", 4, 4)],
)  # fmt: skip
def test_frames_are_pooled(
    device: str, game: str, frameskip: int, pooled: int, grayscale: bool
) -> None:
    """The oracle plays on the CPU. Episodes are truncated after each number of frames of a step.

    In games whose frames the instruction limit cuts off, also ale-py's steps of two frames do not
    show the maximum of what its steps of one frame show; tests/differential has those.
    """
    other = False
    for most in (41, 42, 43, 44):
        options = {**OPTIONS, "grayscale": grayscale, "max_num_frames_per_episode": most,
                   "reward_clipping": False}  # fmt: skip
        on = {"device": device, "num_threads": 1 if device == "cpu" else 0}
        env = cule.AtariEnv(game, 1, frameskip=frameskip, maxpool=pooled, **{**options, **on})
        two = cule.AtariEnv(game, 1, frameskip=frameskip, **options)
        oracle = Frames(game, frameskip, pooled, **options)
        np.testing.assert_array_equal(env.reset(seed=1)[0], oracle.reset(seed=1))
        two.reset(seed=1)
        rng = np.random.default_rng(most)
        for step in range(30):
            action = int(rng.integers(env.single_action_space.n))
            observation, reward, terminated, truncated, _ = env.step(np.array([action]))
            wanted, gained, over = oracle.step(action)
            np.testing.assert_array_equal(observation, wanted, f"step {step}")
            assert (reward[0], bool(terminated[0] or truncated[0])) == (gained, over)
            other |= (two.step(np.array([action]))[0] != observation).any()
    assert other or game in ("space_invaders", "kangaroo"), "two frames show less"


def test_two_frames_are_the_default() -> None:
    envs = [cule.AtariEnv("asteroids", 2, maxpool=maxpool, **OPTIONS) for maxpool in (True, 2)]
    first, second = (env.reset(seed=0)[0] for env in envs)
    for _ in range(20):
        np.testing.assert_array_equal(first, second)
        first, second = (env.step(np.array([1, 2]))[0] for env in envs)
    assert envs[0].engine.layout.bytes_per_env == envs[1].engine.layout.bytes_per_env


def test_states_go_on(device: str) -> None:
    """Also those of envs that pool two frames, which keep no pooled frame."""
    threads = 1 if device == "cpu" else 0
    options = {**OPTIONS, "device": device, "num_threads": threads,
               "max_num_frames_per_episode": 44}  # fmt: skip
    env = cule.AtariEnv("asteroids", 1, maxpool=4, **options)
    env.reset(seed=0)
    for _ in range(9):
        env.step(np.array([1]))
    state = env.clone_state()
    played = [env.step(np.array([action]))[0] for action in (1, 2, 3, 4)]
    env.restore_state(state)
    for action, observation in zip((1, 2, 3, 4), played, strict=True):
        np.testing.assert_array_equal(env.step(np.array([action]))[0], observation)


@pytest.mark.parametrize(
    ("maxpool", "error", "message"),
    [
        (5, ValueError, "expected maxpool to be at most frameskip=4, got 5"),
        (1, ValueError, "expected maxpool to be .*2"),
        (2.0, TypeError, "expected maxpool to be"),
        ("two", TypeError, "expected maxpool to be"),
    ],
)
def test_wrong_numbers_are_refused(maxpool: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cule.AtariEnv("pong", 1, maxpool=maxpool, **OPTIONS)
