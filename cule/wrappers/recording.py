"""Wraps a batch of envs, and records some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from gymnasium.vector import VectorEnv

from cule import _core
from cule.arguments import env_ids as check_env_ids
from cule.arguments import flag, integer, number
from cule.env.screens import mosaic, titles_of
from cule.errors import InvalidType, InvalidValue
from cule.processes.signals import signals_wait
from cule.vector_env import AtariEnv
from cule.wrappers.base import AtariWrapper
from cule.wrappers.video_file import LEAST_FPS, MAX_FPS, VideoFile


def _samples(atari: AtariEnv, ids: torch.Tensor, sample_rate: int) -> list[Any]:
    """Each env's samples of the last step, (samples,) uint8; None for each in a silent video."""
    if not sample_rate:
        return [None] * len(ids)
    return list(torch.as_tensor(atari.get_sound(ids)).cpu().numpy().reshape(len(ids), -1))


class _OneVideo:
    """A video of all chosen envs side by side."""

    def __init__(
        self, atari: AtariEnv, path: Path, ids: torch.Tensor, length: int | None, fps: float,
        sample_rate: int,
    ):  # fmt: skip
        self._atari, self._ids, self._length = atari, ids, length
        self._sample_rate = sample_rate
        filmed = ids.tolist()
        names = [atari.games[i].name for i in filmed]
        self._titles = titles_of(names, filmed) if len(names) > 1 else None
        self._video = VideoFile(path, fps, sample_rate)

    def film(self, _info: dict[str, Any]) -> None:
        if self._length is not None and self._video.frames >= self._length:
            return
        screens = self._atari.rgb_screens(self._ids).cpu().numpy()
        # A video of several envs is silent.
        samples = _samples(self._atari, self._ids, self._sample_rate)[0]
        self._video.write(mosaic(screens, self._titles), samples)
        if self._video.frames == self._length:
            self._video.close()

    def close(self) -> None:
        self._video.close()


class _EpisodeVideos:
    """A video of each episode of the chosen envs that the trigger picks."""

    def __init__(
        self, atari: AtariEnv, path: Path, ids: torch.Tensor, length: int | None, fps: float,
        sample_rate: int, trigger: Callable[[int], bool],
    ):  # fmt: skip
        if not callable(trigger):
            raise InvalidType(
                f"expected episode_trigger to be a function of an episode's number, got {trigger!r}"
            )
        self._atari, self._path, self._length, self._fps = atari, path, length, fps
        self._trigger, self._sample_rate = trigger, sample_rate
        # The number of each env's episode.
        self._episodes = dict.fromkeys(ids.tolist(), -1)
        self._ids = torch.tensor(list(self._episodes), device=atari.device)
        self._open: dict[int, VideoFile] = {}
        self._closed = False
        # What cannot be made is refused before anything is played.
        VideoFile(path, fps, sample_rate).close()

    def film(self, info: dict[str, Any]) -> None:
        marks = torch.stack([torch.as_tensor(info[key]) for key in ("new_game", "game_over")])
        began, over = marks[:, self._ids.to(marks.device)].tolist()
        for i, begins in zip(self._episodes, began, strict=True):
            if begins:
                self._begin(i)
        videos = dict(self._open)  # another thread may close them meanwhile
        filmed = [i for i in self._episodes if i in videos]
        if not filmed:
            return
        ids = torch.tensor(filmed, device=self._atari.device)
        screens = self._atari.rgb_screens(ids).cpu().numpy()
        ended = {
            i for i, *marks in zip(self._episodes, began, over, strict=True)
            if marks == [False, True]
        }  # fmt: skip
        sounds = _samples(self._atari, ids, self._sample_rate)
        for i, screen, samples in zip(filmed, screens, sounds, strict=True):
            videos[i].write(mosaic(screen[None], None), samples)
            if i in ended or videos[i].frames == self._length:
                self._end(i)

    def _end(self, env: int) -> None:
        """Finishes the video of an env, if there is one."""
        if (video := self._open.pop(env, None)) is not None:
            video.close()

    def _begin(self, env: int) -> None:
        """Begins the video of a new episode if it is wanted. One that was left ends."""
        self._end(env)
        self._episodes[env] += 1
        episode = self._episodes[env]
        if self._trigger(episode) and not self._closed:
            path = self._path
            name = f"{path.stem}-env-{env}-episode-{episode}{path.suffix}"
            self._open[env] = VideoFile(path.with_name(name), self._fps, self._sample_rate)

    def close(self) -> None:
        self._closed = True
        with signals_wait():
            for env in list(self._open):
                self._end(env)


class RecordVideo(AtariWrapper):
    """Records a video of some envs of a batch, with one frame for each reset and step.

    Several envs are side by side, each under the name of its game, with its number if other envs
    play that game, too. A single env fills the picture.

    With `episode_trigger` each env has a video of its own of each episode that the trigger picks:
    `video-env-3-episode-8.mp4` in place of `video.mp4`. It begins with the reset's frame and ends
    with the game (a lost life that `life_loss_info` reports is no end). In SAME_STEP the step that
    ends a game shows the next one already, so that its last frame is missing.

    Args:
        env: an AtariEnv, or a wrapper of one.
        path: the file, .mp4 or .gif.
        env_ids: which envs (None: all; with `episode_trigger`, env 0). Only their screens leave the
            device.
        length: how many frames to record, at least 1 (None: until close), in each video.
        fps: frames per second of the video (None: the console's speed).
        episode_trigger: as in gymnasium's RecordVideo, is given the number of an env's episode,
            from 0, and returns whether to record it. None: all is recorded, in one file.
        sound: whether videos have sound, for which the env needs sound_obs=True, and each video one
            env and the name of an .mp4. None: if that is so.

    Raises:
        TypeError, ValueError: there are no such envs, `length` is not a count, `episode_trigger` is
            not a function, there can be no sound, or the file cannot be made.
    """

    def __init__(
        self,
        env: VectorEnv,
        path: str | Path,
        env_ids: Sequence[int] | None = None,
        length: int | None = None,
        fps: float | None = None,
        episode_trigger: Callable[[int], bool] | None = None,
        sound: bool | None = None,
    ):
        super().__init__(env)
        atari = self.atari
        length = None if length is None else integer("length", length)
        if env_ids is None and episode_trigger is not None:
            env_ids = [0]
        ids = check_env_ids(env_ids, atari.num_envs, atari.device)
        if not ids.numel():
            raise InvalidValue("expected env_ids of the envs to record, got none")
        if fps is None:
            fps = atari.metadata["render_fps"] / atari.engine.options.frameskip
        fps = number("fps", fps, LEAST_FPS, MAX_FPS)
        alone = episode_trigger is not None or len(ids) == 1
        heard = self._has_sound(sound, alone, Path(path))
        rate = round(_core.FRAME_SAMPLES * atari.engine.options.frameskip * fps) if heard else 0
        what = (atari, Path(path), ids, length, fps, rate)
        self._videos = (
            _OneVideo(*what) if episode_trigger is None else _EpisodeVideos(*what, episode_trigger)
        )

    def _has_sound(self, asked: bool | None, alone: bool, path: Path) -> bool:
        there = self.atari.engine.options.sound
        if asked is None:
            return there and alone and path.suffix.lower() == ".mp4"
        if flag("sound", asked) and not (there and alone):
            what = "one without sound_obs=True" if alone else "several envs"
            raise InvalidValue(f"expected an env with sound in a video with sound=True, got {what}")
        return asked

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets the env and records its screens."""
        result = self.env.reset(seed=seed, options=options)
        self._videos.film(result[1])
        return result

    def step(
        self, actions: Any, player_b_actions: Any = None
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the env, with the second player's actions if given, and records its screens."""
        result = super().step(actions, player_b_actions)
        self._videos.film(result[4])
        return result

    def close(self, **arguments: Any) -> None:
        """Finishes the videos and closes the env."""
        self._videos.close()
        super().close(**arguments)
