"""What envs, wrappers and programs do with sound; its samples are tests/differential's."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict
from gymnasium.utils.env_checker import check_env

import cule
from cule import play
from cule.env.flights import Flights
from cule.single_env import SingleAtariEnv
from cule.wrappers.soundtrack import PATIENCE, SAMPLE_RATE

OPTIONS: dict[str, Any] = {"device": "cpu", "sound_obs": True, "reset_pool_size": 2}


def loud(env: Any, steps: int = 60) -> Any:
    """The observations of the first step in which something is heard."""
    for step in range(steps):
        observations = env.step(np.full(env.unwrapped.batch_size, 1 + step % 3))[0]
        if (np.asarray(observations["sound"]) > 128).any():
            return observations
    raise AssertionError("no sound")


@pytest.mark.parametrize("obs_type", ["image", "ram"])
def test_observations_are_in_their_space(obs_type: str) -> None:
    env = cule.AtariEnv("space_invaders", 3, output="numpy", obs_type=obs_type, **OPTIONS)
    assert isinstance(env.single_observation_space, Dict)
    assert env.single_observation_space["sound"] == Box(0, 255, (512,), np.uint8)
    plain = cule.AtariEnv("space_invaders", 3, "cpu", obs_type=obs_type, reset_pool_size=2)
    assert env.single_observation_space["image"] == plain.single_observation_space
    assert env.reset(seed=1)[0] in env.observation_space
    observations = loud(env)
    assert observations in env.observation_space
    assert (env.get_sound()[:, -1] == observations["sound"]).all()
    assert (env.get_sound([2, 0]) == env.get_sound()[[2, 0]]).all()


def test_gymnasiums_checker_takes_sound() -> None:
    check_env(SingleAtariEnv("ms_pacman", obs_type="rgb", sound_obs=True, reset_pool_size=0))


def test_what_is_returned_stays_unless_it_is_shared() -> None:
    copied, shared = (
        cule.AtariEnv("space_invaders", 2, output=output, **OPTIONS)
        for output in ("torch", "torch_shared")
    )
    copied.reset(seed=1)
    first, _ = shared.reset(seed=1)
    kept = loud(copied)
    again = loud(shared)
    assert first["sound"].data_ptr() == again["sound"].data_ptr()
    assert torch.equal(kept["sound"], again["sound"])
    was = kept["sound"].clone()
    for env in (copied, shared):
        for _ in range(40):
            env.step([0, 0])
    assert torch.equal(kept["sound"], was) and not torch.equal(again["sound"], was)


def test_smaller_batches_and_flights_have_the_sound_of_their_envs() -> None:
    whole = cule.AtariEnv("space_invaders", 3, **OPTIONS)
    some = cule.AtariEnv("space_invaders", 3, batch_size=2, num_threads=1, **OPTIONS)
    flown = cule.AtariEnv("space_invaders", 3, num_threads=1, **OPTIONS)
    whole.reset(seed=1)
    observed, _ = some.reset(seed=1)
    assert observed["sound"].shape == (2, 512) and observed["image"].shape == (2, 4, 84, 84)
    flown.reset(seed=1)
    flights = Flights(flown)
    for step in range(40):
        wanted = whole.step([1 + step % 3] * 3)[0]["sound"]
        flights.wait(flights.step([0, 2], [1 + step % 3] * 2))
        assert torch.equal(flights.results([0, 2])[0]["sound"], wanted[[0, 2]])
    assert (wanted > 0).any()
    some.step(torch.full((2,), 1))


def test_compiled_step_gives_sound() -> None:
    options = OPTIONS | {"autoreset_mode": "same_step", "max_num_frames_per_episode": 180}
    plain, traced = (cule.AtariEnv("space_invaders", 2, **options) for _ in range(2))
    plain.reset(seed=1)
    traced.reset(seed=1)
    step = torch.compile(lambda actions: traced.step(actions), backend="eager", fullgraph=True)
    ends = 0
    for number in range(60):
        actions = torch.full((2,), 1 + number % 3)
        ours, theirs = step(actions), plain.step(actions)
        assert torch.equal(ours[0]["sound"], theirs[0]["sound"])
        if theirs[3].any():
            ends += 1
            wanted = theirs[4]["final_obs"]
            assert torch.equal(ours[4]["final_obs"]["sound"], wanted["sound"])
            assert torch.equal(ours[4]["final_obs"]["image"], wanted["image"])
    assert ends


def samples_of(film: Path) -> np.ndarray:
    """A film's sound, decoded: 0 is silence."""
    from imageio_ffmpeg import get_ffmpeg_exe

    command = [
        get_ffmpeg_exe(), "-v", "error", "-i", str(film), "-map", "0:a", "-ar", str(SAMPLE_RATE),
        "-ac", "1", "-f", "s16le", "-",
    ]  # fmt: skip
    return np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, np.int16)


def test_video_of_one_env_has_its_sound(tmp_path: Path) -> None:
    env = cule.AtariEnv("space_invaders", 2, frameskip=2, **OPTIONS)
    film = cule.RecordVideo(env, tmp_path / "film.mp4", env_ids=[1])
    film.reset(seed=1)
    heard = [np.zeros((2, 512), np.uint8)]  # of the reset
    for step in range(120):
        film.step([1 + step % 3] * 2)
        heard.append(env.get_sound([1])[0].numpy())
    film.close()
    wanted = np.maximum(np.concatenate(heard).reshape(-1), 128).astype(float) - 128
    told = samples_of(tmp_path / "film.mp4").astype(float)
    assert abs(len(told) - len(wanted)) < 4096  # a block of the codec
    told = told[: len(wanted)]
    # The codec is not exact. It is as loud where the game is.
    blocks = len(told) // 1024
    ours, theirs = (
        np.std(each[: blocks * 1024].reshape(blocks, -1), axis=1) for each in (wanted, told)
    )
    assert ours.max() > 0 and np.corrcoef(ours, theirs)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("options", "name", "ids"),
    [({"sound": False}, "a.mp4", [0]), ({}, "b.mp4", [0, 1]), ({}, "c.gif", [0])],
)
def test_other_videos_have_none(
    tmp_path: Path, options: dict[str, Any], name: str, ids: list[int]
) -> None:
    env = cule.AtariEnv("pong", 2, **OPTIONS)
    film = cule.RecordVideo(env, tmp_path / name, env_ids=ids, **options)
    film.reset(seed=1)
    film.step([0, 0])
    film.close()
    with pytest.raises(subprocess.CalledProcessError):
        samples_of(tmp_path / name)


def test_sound_that_cannot_be_is_refused(tmp_path: Path) -> None:
    env = cule.AtariEnv("pong", 2, "cpu", reset_pool_size=1)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"expected an env with sound_obs=True for get_sound"):
        env.get_sound()
    with pytest.raises(ValueError, match=r"in a video with sound=True, got one without sound_obs"):
        cule.RecordVideo(env, tmp_path / "a.mp4", env_ids=[0], sound=True)
    heard = cule.AtariEnv("pong", 2, "cpu", reset_pool_size=1, sound_obs=True)
    with pytest.raises(ValueError, match=r"in a video with sound=True, got several envs$"):
        cule.RecordVideo(heard, tmp_path / "a.mp4", sound=True)
    with pytest.raises(ValueError, match=r"a video with sound to end in \.mp4, got '.*a\.gif'$"):
        cule.RecordVideo(heard, tmp_path / "a.gif", env_ids=[0], sound=True)
    with pytest.raises(TypeError, match=r"expected sound_obs to be True or False, got 'yes'$"):
        cule.AtariEnv("pong", 1, "cpu", sound_obs="yes")  # type: ignore[arg-type]
    single = SingleAtariEnv("pong", reset_pool_size=1)
    single.ale.setBool("sound_obs", True)
    with pytest.raises(RuntimeError, match=r"expected sound_obs to be False, with which this env"):
        single.ale.loadROM(str(cule.rom.rom_path(cule.rom.find_game("pong"))))


def test_ffmpeg_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"old")
    env = cule.AtariEnv("pong", 1, **OPTIONS)
    film = cule.RecordVideo(env, path)
    film.reset(seed=1)
    with pytest.raises(ValueError, match=r"expected a video file that can be written"):
        monkeypatch.setattr("subprocess.run", lambda *_, **__: argparse.Namespace(
            returncode=1, stderr=b"broken"))  # fmt: skip
        film.close()
    assert path.read_bytes() == b"old"

    def late(*_: Any, timeout: float, **__: Any) -> None:
        raise subprocess.TimeoutExpired("ffmpeg", timeout)

    film = cule.RecordVideo(env, path)
    film.reset(seed=1)
    monkeypatch.setattr("subprocess.run", late)
    with pytest.raises(ValueError, match=rf"ffmpeg took more than {PATIENCE} s"):
        film.close()
    assert path.read_bytes() == b"old"


def test_wrong_speeds_of_films_are_refused(tmp_path: Path) -> None:
    env = cule.AtariEnv("pong", 1, **OPTIONS)
    for fps in (float("nan"), float("inf"), 0):
        with pytest.raises(ValueError, match=r"expected fps to be from 0\.01 to 100000, got"):
            cule.RecordVideo(env, tmp_path / "film.mp4", fps=fps)
    with pytest.raises(TypeError, match=r"expected fps to be a number, got"):
        cule.RecordVideo(env, tmp_path / "film.mp4", fps="a")


def test_frames_before_a_state_that_was_given_are_silent() -> None:
    env = cule.AtariEnv("seaquest", 2, **OPTIONS | {"frameskip": 4})
    env.reset(seed=1)
    for step in range(40):
        env.step(torch.tensor([step % 18, 17 - step % 18]))
    before = env.get_sound()
    assert (before != 128).any(-1).any(-1).all()
    env.copy_state([0], [1])
    after = env.get_sound()
    assert torch.equal(after[0], before[0]) and torch.equal(after[1, -1], before[0, -1])
    assert (after[1, :-1] == 128).all()


def test_play_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    speaker = play.Speaker(1.0, muted=False)
    try:
        assert pygame.mixer.get_init()[0] == SAMPLE_RATE
        frame = np.full(512, 160, np.uint8)
        for _ in range(speaker.FRAMES):
            speaker.hear(frame)
        assert pygame.mixer.Channel(0).get_busy()
        for _ in range(50):  # faster than it is played: it waits for no one, and keeps no more
            speaker.hear(frame)
        assert len(speaker._waiting) <= 2 * speaker.FRAMES
    finally:
        pygame.mixer.quit()
    assert play.Speaker(1.0, muted=True).hear(frame) is None
    assert pygame.mixer.get_init() is None


def test_play_without_a_device_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_AUDIODRIVER", "nothing")
    play.Speaker(1.0, muted=False).hear(np.zeros(512, np.uint8))
    assert "There is no sound" in capsys.readouterr().out
