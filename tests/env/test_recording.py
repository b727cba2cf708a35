"""Videos of envs: what is in the files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import imageio
import numpy as np
import pytest

import cule
from cule.env.screens import BACKGROUND, MARGIN, TITLE_HEIGHT, mosaic
from cule.wrappers.video_file import VideoFile


def make(num_envs: int = 5, game: str = "pong", **options: Any) -> cule.AtariEnv:
    return cule.AtariEnv(game, num_envs, device="cpu", num_threads=1, reset_pool_size=2, **options)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_video_shows_the_chosen_envs(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"video{suffix}"
    env = cule.RecordVideo(make(), path, env_ids=[3, 0], fps=15)
    env.reset(seed=0)
    for _ in range(10):
        env.step([0, 1, 2, 3, 4])
    screens = env.unwrapped.get_screen_rgb().numpy()
    env.close()
    frames = imageio.mimread(path)
    # A GIF's frames that are alike are one.
    assert len(frames) == 11 if suffix == ".mp4" else 2 <= len(frames) <= 11
    assert frames[0].shape == (TITLE_HEIGHT + 210 + 2 * MARGIN, 2 * 320 + 3 * MARGIN, 3)
    for i, env_id in enumerate((3, 0)):
        left = MARGIN + i * (320 + MARGIN)
        shown = frames[-1][MARGIN + TITLE_HEIGHT : -MARGIN, left : left + 320 : 2].astype(int)
        difference = np.abs(shown - screens[env_id]).mean()
        assert difference < 4 if suffix == ".mp4" else difference == 0


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_each_env_has_videos_of_the_episodes_that_are_asked_for(mode: str, tmp_path: Path) -> None:
    """Episodes are of 8 steps here. Frames are the reset's and the steps', as in gymnasium's."""
    asked: list[int] = []

    def trigger(episode: int) -> bool:
        asked.append(episode)
        return episode % 2 == 1

    env = make(3, autoreset_mode=mode, max_num_frames_per_episode=32, noop_max=0, output="numpy")
    env = cule.RecordVideo(
        env, tmp_path / "pong.mp4", env_ids=[2, 0], fps=15, episode_trigger=trigger
    )
    env.reset(seed=0)
    for _ in range(30):
        _, _, terminated, truncated, _ = env.step([0, 1, 2])
        if mode == "Disabled" and (terminated | truncated).any():
            env.reset(options={"reset_mask": terminated | truncated})
    env.close()
    assert sorted(asked) == [0, 0, 1, 1, 2, 2, 3, 3]
    files = {path.name: len(imageio.mimread(path)) for path in tmp_path.iterdir()}
    last = {"NextStep": 4, "SameStep": 7, "Disabled": 7}[mode]  # the env was closed in it
    whole = 8 if mode == "SameStep" else 9
    assert files == {
        f"pong-env-{i}-episode-{episode}.mp4": whole if episode == 1 else last
        for i in (0, 2)
        for episode in (1, 3)
    }


def test_video_of_an_episode_shows_that_env(tmp_path: Path) -> None:
    env = cule.RecordVideo(make(3), tmp_path / "a.gif", length=4, episode_trigger=lambda _: True)
    env.reset(seed=0)
    for _ in range(3):
        env.step([2, 3, 4])
    screen = env.unwrapped.get_screen_rgb()[0].numpy()
    env.step([2, 3, 4])
    env.close()
    (path,) = tmp_path.iterdir()
    assert path.name == "a-env-0-episode-0.gif"
    np.testing.assert_array_equal(imageio.mimread(path)[-1][:, ::2], screen)


def test_triggers_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"episode_trigger to be a function .*, got 3"):
        cule.RecordVideo(make(1), tmp_path / "a.gif", episode_trigger=3)
    with pytest.raises(ValueError, match=r"to end in \.mp4 or \.gif"):
        cule.RecordVideo(make(1), tmp_path / "a.avi", episode_trigger=bool)
    with pytest.raises(ValueError, match="expected env_ids of the envs to record, got none"):
        cule.RecordVideo(make(1), tmp_path / "a.gif", env_ids=[])
    assert not list(tmp_path.iterdir())


def test_video_has_margins_and_names_the_games_of_several_envs(tmp_path: Path) -> None:
    """A title has the env's number if several show the same game.

    A single env fills the picture.
    """
    path = tmp_path / "video.gif"
    games = ["pong", "freeway", "pong"]
    shown = {}
    for env_ids in ([0, 1, 2], [1, 0], [2]):
        env = cule.AtariEnv(games, 3, device="cpu", reset_pool_size=1)
        env = cule.RecordVideo(env, path, env_ids=env_ids)
        env.reset(seed=0)
        screens = env.unwrapped.get_screen_rgb().numpy()[env_ids]
        env.close()
        shown[len(env_ids)] = imageio.mimread(path)[0], screens
    titles = {3: ["pong 0", "freeway", "pong 2"], 2: ["freeway", "pong"], 1: None}
    for count in titles:
        picture, screens = shown[count]
        np.testing.assert_array_equal(picture, mosaic(screens, titles[count]))
    assert shown[1][0].shape == (210, 320, 3)
    title = shown[2][0][:TITLE_HEIGHT, : 320 + MARGIN]
    assert (title[:MARGIN] == BACKGROUND).all() and not (title == BACKGROUND).all()
    assert (shown[2][0][:, 320 + MARGIN : 320 + 2 * MARGIN] == BACKGROUND).all()


def test_video_is_as_long_as_asked_and_as_fast_as_the_console(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    env = cule.RecordVideo(make(2), path, length=4)
    env.reset(seed=0)
    for _ in range(10):
        env.step([0, 0])
    video = imageio.get_reader(path)  # finished before the env is closed
    assert video.count_frames() == 4
    assert video.get_meta_data()["fps"] == 15
    env.close()
    env.close()


def test_gif_leaves_out_frames_that_players_would_not_show(tmp_path: Path) -> None:
    path = tmp_path / "video.gif"
    with VideoFile(path, fps=100) as video:
        for i in range(20):
            video.write(np.full((40, 40, 3), 10 * i, np.uint8))
    frames = imageio.mimread(path)
    assert [int(frame[0, 0, 0]) for frame in frames] == list(range(0, 200, 20))
    assert imageio.get_reader(path).get_meta_data()["duration"] == 20


@pytest.mark.parametrize("fps", [0.01, 7.3, 59.92, 100_000])
def test_video_is_whole_at_any_speed(fps: float, tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    with VideoFile(path, fps=fps) as video:
        for i in range(7):
            video.write(np.full((20, 20, 3), 30 * i, np.uint8))
    assert imageio.get_reader(path).count_frames() == 7


def test_video_passes_the_second_players_actions_on(tmp_path: Path) -> None:
    plain, alone = make(2, "space_war"), make(2, "space_war")
    env = cule.RecordVideo(make(2, "space_war"), tmp_path / "video.gif")
    plain.reset(seed=0), alone.reset(seed=0), env.reset(seed=0)
    for _ in range(20):
        plain.step([0, 0], player_b_actions=[2, 3]), alone.step([0, 0])
        env.step([0, 0], player_b_actions=[2, 3])
        assert env.unwrapped.get_ram().equal(plain.get_ram())
    assert not alone.get_ram().equal(plain.get_ram())
    env.close()


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"fps": 0}, ValueError, "expected fps to be from 0.01 to 100000, got 0"),
        ({"fps": float("inf")}, ValueError, "expected fps to be from 0.01 to 100000, got inf"),
        ({"fps": "60"}, TypeError, "expected fps to be a number, got '60'"),
        ({"fps": True}, TypeError, "expected fps to be a number, got True"),
        ({"length": 0}, ValueError, "expected length to be at least 1, got 0"),
        ({"length": 2.5}, TypeError, "expected length to be an integer, got 2.5"),
        ({"length": "4"}, TypeError, "expected length to be an integer, got '4'"),
    ],
    ids=str,
)
def test_wrong_numbers_are_refused_before_there_is_a_file(
    options: dict[str, Any], kind: type[Exception], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=f"^{sentence}$"):
        cule.RecordVideo(make(1), tmp_path / "video.mp4", **options)
    assert list(tmp_path.iterdir()) == []


def test_wrong_films_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a video to end in .mp4 or .gif, got 'video.avi'"):
        VideoFile("video.avi")
    (tmp_path / "folder.mp4").mkdir()
    with pytest.raises(
        ValueError, match=r"a video file that can be written, got .*: Is a directory"
    ):
        VideoFile(tmp_path / "folder.mp4")
    with pytest.raises(ValueError, match=r"a video file that can be written, got .*: No such file"):
        VideoFile(tmp_path / "nowhere" / "video.mp4")
    with VideoFile(tmp_path / "video.mp4") as video:
        video.write(np.zeros((20, 20, 3), np.uint8))
        with pytest.raises(
            ValueError, match=r"frame of shape \(20, 20, 3\) and uint8, got \(20, 22, 3\)"
        ):
            video.write(np.zeros((20, 22, 3), np.uint8))
        with pytest.raises(ValueError, match="and float64"):
            video.write(np.zeros((20, 20, 3)))
    with pytest.raises(ValueError, match="env_ids from 0 to 4"):
        cule.RecordVideo(make(), tmp_path / "video.mp4", env_ids=[5])
    with pytest.raises(TypeError, match=r"expected a cule.AtariEnv, got SyncVectorEnv"):
        cule.RecordVideo(gymnasium.make_vec("CartPole-v1", 1, "sync"), tmp_path / "video.mp4")
