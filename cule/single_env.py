"""One console as a gymnasium.Env: gymnasium.make("cule/Pong-v5").

Its observations are those of one env of AtariEnv, or whole screens as in ale-py's single env.
Seeds, random frameskips and ends of episodes are those of ale-py (https://ale.farama.org/env-spec),
so that the same seeds give the same runs.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode

from cule import _core, arguments
from cule.env.ale_settings import AleSettings
from cule.env.ale_view import Actions, AleView
from cule.env.guard import changes, reads
from cule.env.keywords import refuse
from cule.env.lineup import games_of_envs
from cule.env.one_console import OneConsole
from cule.env.outputs import Step
from cule.env.rendering import FRAMES_PER_SECOND
from cule.env.settings import OF_IMAGES
from cule.env.spaces import with_sound
from cule.errors import InvalidType, InvalidValue, shown
from cule.facts.names import warn_of_other_meanings
from cule.state import State
from cule.vector_env import AtariEnv

SCREENS = ("rgb", "grayscale")
OBS_TYPES = ("image", "ram", *SCREENS)
_RENDER_MODES = ("human", "rgb_array")
_RESERVED = {
    "num_envs": "it has one console",
    "num_players": "it has one player",
    "output": "it gives arrays",
    "autoreset_mode": "its user resets it",
}
_OF_IMAGES = dict.fromkeys(OF_IMAGES, "obs_type 'rgb' and 'grayscale' are whole screens")
# The keys of ale-py's env, for gymnasium.utils.play: one for each word in an action's name, in the
# order of a combination.
_KEYS = {"NOOP": "e", "UP": "w", "DOWN": "s", "LEFT": "a", "RIGHT": "d", "FIRE": " "}


def _frameskips(value: Any) -> int | tuple[int, int]:
    """A number of frames, or the (low, high) that it is drawn from."""
    if not isinstance(value, (tuple, list)):
        return arguments.integer("frameskip", value)
    if len(value) != 2 or any(
        isinstance(end, bool) or not isinstance(end, (int, np.integer)) for end in value
    ):
        raise InvalidType(
            f"expected frameskip to be an integer or two of them, (low, high), got {shown(value)}"
        )
    low, high = map(int, value)
    if not 1 <= low < high:
        raise InvalidValue(
            f"expected frameskip to be (low, high) with 1 <= low < high, got {shown(value)}"
        )
    return low, high


class SingleAtariEnv(gymnasium.Env):
    """One Atari 2600 console.

    Args:
        game: as AtariEnv's.
        device: as AtariEnv's, but by default the CPU, where a single console is fastest.
        obs_type: "image" and "ram" as AtariEnv's; "rgb" or "grayscale": the whole screen after the
            last frame, without AtariEnv's img_height, img_width, grayscale, stack_num, maxpool.
        frameskip: frames in a step; or (low, high): each step draws it at random, from low to high
            - 1.
        max_num_frames_per_episode: frames after which an episode is truncated; the frames that a
            reset plays count, too.
        repeat_action_probability: as AtariEnv's.
        sound_obs: observations are a dict of "image" and "sound", (512,) uint8, as AtariEnv's.
        render_mode: None; "rgb_array": `render` gives (height, 320, 3) uint8; "human": each reset
            and step draws the screen in a window, which needs `pip install pygame`.
        **options: AtariEnv's other keywords, except num_envs, num_players, output and
            autoreset_mode.

    Attributes:
        ale: an AleView, for wrappers that read ale-py's `env.unwrapped.ale`.

    Raises:
        TypeError, ValueError: as AtariEnv's.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(_RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
    }

    def __init__(
        self,
        game: str,
        device: str = "cpu",
        *,
        obs_type: Literal["image", "ram", "rgb", "grayscale"] = "image",
        frameskip: int | Sequence[int] = 4,
        max_num_frames_per_episode: int = 108_000,
        repeat_action_probability: float = 0.0,
        sound_obs: bool = False,
        render_mode: Literal["human", "rgb_array"] | None = None,
        **options: Any,
    ):
        self.render_mode = arguments.choice("render_mode", render_mode, (None, *_RENDER_MODES))
        self.obs_type = arguments.choice("obs_type", obs_type, OBS_TYPES)
        # gymnasium's AtariPreprocessing, from 1.1 to 1.4, reads it under this name.
        self._frameskip = _frameskips(frameskip)
        self._max_frames = arguments.integer(
            "max_num_frames_per_episode", max_num_frames_per_episode
        )
        refuse("SingleAtariEnv", options, _RESERVED | (_OF_IMAGES if obs_type in SCREENS else {}))
        (played,) = games_of_envs(game, 1)
        warn_of_other_meanings(
            [game],
            frameskip=self._frameskip,
            repeat_action_probability=repeat_action_probability,
            obs_type=obs_type,
        )
        low, high = (
            self._frameskip
            if isinstance(self._frameskip, tuple)
            else (self._frameskip, self._frameskip + 1)
        )
        self.metadata = type(self).metadata | {
            "render_fps": max(1, round(2 * FRAMES_PER_SECOND / (low + high - 1)))
        }
        self.env = AtariEnv(
            played.name, 1, device, output="numpy", autoreset_mode=AutoresetMode.DISABLED,
            frameskip=high - 1, max_num_frames_per_episode=self._max_frames,
            repeat_action_probability=repeat_action_probability,
            obs_type="image" if obs_type == "image" else "ram",  # of screens none of them is used
            sound_obs=sound_obs,
            render_mode=render_mode, **options,
        )  # fmt: skip
        self.sound_obs = bool(sound_obs)
        self._guard = _core.Guard()
        self._terminated = self._truncated = self._over = False
        self._last: tuple[Any, float, bool, bool, dict[str, Any]] | None = None
        self._console = OneConsole(self.env)
        self.ale = self._make_ale(float(repeat_action_probability))
        self.observation_space = self._make_observation_space()
        self.action_space = self.env.single_action_space

    def _make_ale(self, probability: float) -> AleView:
        actions = Actions(
            lambda: (self._terminated, self._truncated), lambda: self._over, self.restore_state,
            self._act, self._load, self.reset,
        )  # fmt: skip
        settings = AleSettings(
            sound_obs=self.sound_obs,
            repeat_action_probability=probability,
            max_num_frames_per_episode=self._max_frames,
        )
        return AleView(self.env, actions, settings)

    def _make_observation_space(self) -> gymnasium.Space:
        if self.obs_type not in SCREENS:
            return self.env.single_observation_space
        colors = (3,) if self.obs_type == "rgb" else ()
        shape = (*self.ale.getScreenDims(), *colors)
        screens = Box(low=0, high=255, shape=shape, dtype=np.uint8)
        return with_sound(screens) if self.sound_obs else screens

    def _observation(self, observations: Any) -> Any:
        if not self.sound_obs:
            return self._image(observations)
        return {"image": self._image(observations["image"]), "sound": self.ale.getAudio()}

    def _image(self, images: np.ndarray) -> np.ndarray:
        if self.obs_type not in SCREENS:
            return images[0]
        return self.ale.getScreenRGB() if self.obs_type == "rgb" else self.ale.getScreenGrayscale()

    @staticmethod
    def _info(infos: dict[str, np.ndarray]) -> dict[str, Any]:
        return {key: int(value[0]) for key, value in infos.items() if not key.startswith("_")}

    def _seed(self, seed: int) -> int:
        """Seeds `np_random`, which draws frameskips and wrappers' no-ops, as ale-py's env does.

        Returns:
            The seed that `np_random` got.
        """
        drawn_from = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._np_random, _ = seeding.np_random(drawn_from)
        return drawn_from

    @changes
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: for the console and for `np_random`; None: both go on as they are.
            options: None or empty, as one console takes none.

        Returns:
            The observation, uint8: (stack_num, img_height, img_width); (128,) with obs_type "ram";
            (height, 160, 3) with "rgb"; (height, 160) with "grayscale"; with sound a dict of that
            and the sound. And a dict of numbers. With a seed it has `seeds`, that of `np_random`
            and that of the console.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            RuntimeError: another thread is in the env.
            TypeError, ValueError: `seed` is not an integer of at least 0, or there are options.
        """
        if options:
            raise InvalidValue(
                f"expected no options, as one console takes none, got {shown(options)}"
            )
        if seed is not None:
            seed = arguments.integer("seed", seed, 0, arguments.MAX_SEED)
        super().reset(seed=seed)
        observations, infos = self.env.reset(seed=seed)
        info = self._info(infos)
        if seed is not None:
            info["seeds"] = (self._seed(seed), seed)
        self._begin(info["episode_frame_number"])
        return self._observation(observations), info

    def _begin(self, frames: int) -> None:
        """Notes that an episode begins, after some frames that count."""
        self._terminated = self._truncated = self._over = False
        # AtariEnv counts an episode's frames from here on.
        self.env.engine.batch.max_frames = max(1, self._max_frames - frames)

    @changes
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays `frameskip` frames. After a truncation it plays none until the next reset.

        Raises:
            gymnasium.error.ClosedEnvironmentError, gymnasium.error.ResetNeeded, RuntimeError,
                TypeError, ValueError: as AtariEnv's.
        """
        drawn = (
            int(self.np_random.integers(*self._frameskip))
            if isinstance(self._frameskip, tuple)
            else None
        )
        if self._truncated and self._last and not self.env.closed:
            observation, _, terminated, truncated, info = self._last
            observation = copy.deepcopy(observation)
            if self.sound_obs:  # as in ale-py, what sounds goes on
                for _ in range(drawn or self.env.engine.batch.frameskip):
                    self._console.hear()
                observation["sound"] = self.ale.getAudio()
            return observation, 0.0, terminated, truncated, info | {"raw_reward": 0}
        if drawn is not None and not self.env.closed:
            self.env.engine.batch.frameskip = drawn
        return self._note(self.env.step(arguments.on_host("action", action)[None]))

    def _note(self, results: Step) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The env's results of a step or frame, which are also kept."""
        observations, rewards, ends, cuts, infos = results
        self._terminated, self._truncated = bool(ends[0]), bool(cuts[0])
        self._over = bool(infos["game_over"][0])
        self._last = (
            self._observation(observations),
            float(rewards[0]),
            self._terminated,
            self._truncated,
            self._info(infos),
        )
        return self._last

    @changes
    def _act(self, action: int, strength: float) -> int:
        """A frame with an action (see cule.ACTIONS), for `ale`; returns the reward."""
        return self._note(self._console.play_frame(action, strength))[4]["raw_reward"]

    @changes
    def _load(self, seed: int | None, probability: float, max_frames: int) -> None:
        """Turns the console on, for `ale`."""
        self._max_frames, self._last = max_frames, None
        self._console.power_on(seed, probability)
        self._begin(int(self.env.engine.tensors["episode_frame_numbers"][0]))

    def render(self) -> np.ndarray | None:
        """(height, 320, 3) uint8 with render_mode "rgb_array"."""
        pictures = self.env.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """Frees the console."""
        self.env.close()

    # The methods of ale-py's env ------------------------------------------------------------------

    def get_action_meanings(self) -> list[str]:
        """The names of the actions, in the order of the action space."""
        return self.env.action_meanings

    def get_keys_to_action(self) -> dict[tuple[str, ...], int]:
        """The action for each combination of keys: w, a, s, d, space, and e for none.

        gymnasium.utils.play looks for it.

        Raises:
            AttributeError: the actions are continuous.
        """
        if self.env.continuous:
            raise AttributeError(
                "expected continuous=False for get_keys_to_action, as keys are on or off, got True"
            )
        return {
            tuple(key for word, key in _KEYS.items() if word in meaning): action
            for action, meaning in enumerate(self.get_action_meanings())
        }

    @reads
    def clone_state(self, include_rng: bool = False) -> State:
        """The console's state, as AtariEnv.clone_state gives it.

        As in ale-py, by default it is without random numbers: after each restore, sticky actions
        are other ones. `np_random`, which draws frameskips, is no part of it.
        """
        return self.env.clone_state(include_rng=include_rng)

    @changes
    def restore_state(self, state: State) -> None:
        """Puts a state from clone_state back; `ale.lives()` is right after the next step.

        As in ale-py, sound is no part of it: it goes on as it is. With AtariEnv's `restore_state`
        it is.
        """
        with self._console.sound_goes_on():
            self.env.restore_state(state)
        self._terminated = self._truncated = self._over = False
