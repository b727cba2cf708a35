"""Films of envs: what is in the files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import imageio
import numpy as np
import pytest

import cule
from cule.recording import VideoFile


def make(num_envs: int = 5, **options: Any) -> cule.AtariEnv:
    return cule.AtariEnv("pong", num_envs, device="cpu", num_threads=1, reset_pool_size=2, **options)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_film_shows_the_chosen_envs(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"film{suffix}"
    env = cule.RecordVideo(make(), path, env_ids=[3, 0], fps=15)
    env.reset(seed=0)
    for _ in range(10):
        env.step([0, 1, 2, 3, 4])
    screens = env.unwrapped.get_screen_rgb().numpy()
    env.close()
    frames = imageio.mimread(path)
    # A GIF's frames that are alike are one.
    assert len(frames) == 11 if suffix == ".mp4" else 2 <= len(frames) <= 11
    assert frames[0].shape == (210, 640, 3)
    for i, env_id in enumerate((3, 0)):
        shown = frames[-1][:, 320 * i : 320 * (i + 1) : 2].astype(int)
        difference = np.abs(shown - screens[env_id]).mean()
        assert difference < 4 if suffix == ".mp4" else difference == 0


def test_film_is_as_long_as_asked_and_as_fast_as_the_console(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    env = cule.RecordVideo(make(2), path, length=4)
    env.reset(seed=0)
    for _ in range(10):
        env.step([0, 0])
    film = imageio.get_reader(path)  # finished before the env is closed
    assert film.count_frames() == 4
    assert film.get_meta_data()["fps"] == 15
    env.close()
    env.close()


def test_gif_leaves_out_frames_that_players_would_not_show(tmp_path: Path) -> None:
    path = tmp_path / "film.gif"
    with VideoFile(path, fps=100) as film:
        for i in range(20):
            film.write(np.full((40, 40, 3), 10 * i, np.uint8))
    frames = imageio.mimread(path)
    assert [int(frame[0, 0, 0]) for frame in frames] == list(range(0, 200, 20))
    assert imageio.get_reader(path).get_meta_data()["duration"] == 20


def test_wrong_films_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a video to end in .mp4 or .gif, got 'film.avi'"):
        VideoFile("film.avi")
    with pytest.raises(ValueError, match="fps to be above 0, got 0"):
        VideoFile(tmp_path / "film.mp4", fps=0)
    with pytest.raises(ValueError, match=r"a video file that can be written, got .*: No such file"):
        VideoFile(tmp_path / "nowhere" / "film.mp4")
    with VideoFile(tmp_path / "film.mp4") as film:
        film.write(np.zeros((20, 20, 3), np.uint8))
        with pytest.raises(ValueError, match=r"frame of shape \(20, 20, 3\) and uint8, got \(20, 22, 3\)"):
            film.write(np.zeros((20, 22, 3), np.uint8))
        with pytest.raises(ValueError, match="and float64"):
            film.write(np.zeros((20, 20, 3)))
    with pytest.raises(ValueError, match="env_ids from 0 to 4"):
        cule.RecordVideo(make(), tmp_path / "film.mp4", env_ids=[5])
    with pytest.raises(TypeError, match=r"expected a cule.AtariEnv, got SyncVectorEnv"):
        cule.RecordVideo(gymnasium.make_vec("CartPole-v1", 1, "sync"), tmp_path / "film.mp4")
