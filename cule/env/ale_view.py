"""`env.unwrapped.ale` of ale-py's single env, answered by cule, for code written for that env.

It has all methods of ale-py's ALEInterface. Values, and types of errors, are those of ale-py
0.12.1. `cule.adapters.ale` has the interface alone, without an env.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from cule import _core
from cule.console import action_numbers
from cule.env.ale_settings import AleSettings
from cule.env.consoles import HasConsoles
from cule.env.guard import reads
from cule.env.one_console import OneConsole
from cule.env.ram import set_ram
from cule.env.states import clone_state
from cule.errors import Failed, InvalidType, InvalidValue, shown
from cule.facts.palette import grey_palette, rgb_palette
from cule.facts.patches import LARGEST, LAST_BYTE
from cule.rom import game_of_rom
from cule.state import State


def _out(values: np.ndarray, into: np.ndarray | None) -> np.ndarray:
    """The values, copied into the caller's array if there is one."""
    if into is None:
        return values
    if into.shape != values.shape:
        raise InvalidValue(
            f"expected an array of shape {values.shape} to write to, got one of {into.shape}; "
            "where a wrapper made it in the shape of observations, make the env with obs_type='rgb'"
        )
    if into.dtype != values.dtype:
        raise InvalidType(f"expected an array of {values.dtype} to write to, got {into.dtype}")
    np.copyto(into, values)
    return into


Method = TypeVar("Method", bound=Callable[..., Any])


def _checked(method: Method, looks: bool) -> Method:
    name = f"unwrapped.ale.{method.__name__}"

    @functools.wraps(method)
    def checked(self: AleView, *arguments: Any, **keywords: Any) -> Any:
        self._consoles.check_idle(name)
        if looks:
            self._consoles.check_started(name)
        return method(self, *arguments, **keywords)

    return reads(cast(Method, checked))


def _reads(method: Method) -> Method:
    """Decorates a method that reads the env: it raises where the env's own methods do."""
    return _checked(method, False)


def _looks(method: Method) -> Method:
    """Decorates a method that reads the env and raises before the first reset."""
    return _checked(method, True)


def _index(what: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """An integer, or one of ale-py's Action and LoggerMode.

    ale-py raises TypeError for any other argument, also one that is out of range.
    """
    try:
        number = operator.index(value.value if isinstance(value, Enum) else value)
    except TypeError as problem:
        raise InvalidType(f"expected {what} to be an integer, got {shown(value)}") from problem
    if number < least or (most is not None and number > most):
        limit = "" if most is None else f" and at most {most}"
        raise InvalidType(f"expected {what} to be at least {least}{limit}, got {number}")
    return number


@dataclass(frozen=True)
class Actions:
    """What an env of one console does for its AleView.

    Attributes:
        ended: whether the last step (terminated, truncated) the episode.
        over: whether a reset has to follow; a lost life that is only reported does not end a game.
        restore: restores a state.
        act: plays a frame with an action and a paddle's strength; returns the reward.
        load: turns the console on, with a seed, the probability of sticky actions, and the frames
            of the longest episode.
        reset: starts an episode.
    """

    ended: Callable[[], tuple[bool, bool]]
    over: Callable[[], bool]
    restore: Callable[[State], None]
    act: Callable[[int, float], int]
    load: Callable[[int | None, float, int], None]
    reset: Callable[[], object]


class AleView:
    """One console under the names of ale-py's ALEInterface.

    Args:
        env: an env of one console.
        actions: what it does.
        settings: its settings.
    """

    def __init__(self, env: HasConsoles, actions: Actions, settings: AleSettings):
        self._env, self._consoles, self._guard = env, env.consoles, env.consoles.guard
        self._ended, self._restore, self._actions = actions.ended, actions.restore, actions
        self.settings, self._console = settings, OneConsole(env)
        self._frame_skip = 1
        engine = self._consoles.engine
        self._game, self._height = engine.groups[0].game, engine.heights[0]
        pal = engine.boots[0].pal
        self._colors, self._greys = (
            rgb_palette(pal),
            np.ascontiguousarray(grey_palette(pal).reshape(-1)),
        )

    def __getattr__(self, name: str) -> Any:
        offered = ", ".join(sorted(name for name in dir(type(self)) if not name.startswith("_")))
        raise AttributeError(
            f"expected one of what cule's env.unwrapped.ale has ({offered}), got {name!r}"
        )

    # Playing --------------------------------------------------------------------------------------

    def act(self, action: int, paddle_strength: float = 1.0) -> int:
        """Plays a frame, or as many as the setting `frame_skip` says; none after the episode's end.

        Args:
            action: its number, see cule.ACTIONS. One that the game does not know is a no-op.
            paddle_strength: how fast a paddle turns.

        Returns:
            The reward, not clipped.

        Raises:
            TypeError: an argument is no number, or the action is negative.
            ValueError: the action is none of cule.ACTIONS, for which ale-py ends the process.
        """
        number = _index("an action", action)
        if number >= _core.NUM_ACTIONS:
            raise InvalidValue(f"expected an action below {_core.NUM_ACTIONS}, got {number}")
        if isinstance(paddle_strength, bool) or not isinstance(
            paddle_strength, (int, float, np.number)
        ):
            raise InvalidType(
                f"expected paddle_strength to be a number, got {shown(paddle_strength)}"
            )
        reward = 0
        with self._console.heard_as_one():
            for _ in range(self._frame_skip):
                if not self._actions.over():
                    reward += self._actions.act(number, float(paddle_strength))
        return reward

    def reset_game(self) -> None:
        """Starts an episode, as the env's reset does."""
        self._actions.reset()

    def loadROM(self, rom: str | os.PathLike[str]) -> None:
        """Turns the console on, with the settings as they are now, in the game's default mode.

        Args:
            rom: the path of the ROM of the env's game.

        Raises:
            RuntimeError: it is another one, or cule cannot do what a setting asks for.
        """
        game = game_of_rom(rom)
        if game != self._game:
            raise Failed(
                f"expected the ROM of {self._game.name!r}, which this env plays, got "
                f"{game.name if game else 'no ROM that cule knows'!r}: cule.adapters.ale loads any"
            )
        self.settings.values["rom_file"] = os.fspath(rom)
        self.settings.check()
        probability = float(self.settings.values["repeat_action_probability"])
        self._console.check_sound(self.settings.get("sound_obs", bool))
        self._actions.load(self.settings.seed, probability, self.settings.max_frames)
        self._frame_skip = int(self.settings.values["frame_skip"])

    def setMode(self, mode: int) -> None:
        """Chooses one of the game's modes, from the next reset on.

        Raises:
            RuntimeError: there is no such mode, or the env has a pool of start states.
        """
        self._console.set_mode(_index("a mode", mode))

    def setDifficulty(self, difficulty: int) -> None:
        """Moves the difficulty switches, from the next frame on.

        Raises:
            RuntimeError: as setMode.
        """
        self._console.set_difficulty(_index("a difficulty", difficulty))

    def setRAM(self, index: int, value: int) -> None:
        """Writes a byte of RAM.

        Raises:
            RuntimeError: `index` is above 127.
            TypeError: `index` is below 0, or `value` is not from 0 to 255.
        """
        address = _index("an index of RAM", index)
        byte = _index("a byte", value, 0, LARGEST)
        if address > LAST_BYTE:
            raise Failed(f"expected an index of RAM to be at most {LAST_BYTE}, got {address}")
        set_ram(self._env, address, byte)

    # Settings -------------------------------------------------------------------------------------

    def getInt(self, key: str) -> int:
        """A setting; -1 if there is none of this name."""
        return self.settings.get(key, int)

    def getFloat(self, key: str) -> float:
        """A setting; -1.0 if there is none of this name."""
        return self.settings.get(key, float)

    def getBool(self, key: str) -> bool:
        """A setting; False if there is none of this name."""
        return self.settings.get(key, bool)

    def getString(self, key: str) -> str:
        """A setting; "" if there is none of this name."""
        return self.settings.get(key, str)

    def setInt(self, key: str, value: int) -> None:
        """Changes a setting; `loadROM` applies it.

        Raises:
            RuntimeError: no setting of this name is an int.
        """
        self.settings.set(key, value, int)

    def setFloat(self, key: str, value: float) -> None:
        """Changes a setting; `loadROM` applies it. Raises as setInt."""
        self.settings.set(key, value, float)

    def setBool(self, key: str, value: bool) -> None:
        """Changes a setting; `loadROM` applies it. Raises as setInt."""
        self.settings.set(key, value, bool)

    def setString(self, key: str, value: str) -> None:
        """Changes a setting; `loadROM` applies it. Raises as setInt."""
        self.settings.set(key, value, str)

    @staticmethod
    def isSupportedROM(rom: str | os.PathLike[str]) -> str | None:
        """The name of the game whose ROM a file is; None if it is of none.

        Raises:
            RuntimeError: there is no such file.
        """
        game = game_of_rom(rom)
        return game.name if game else None

    @staticmethod
    def setLoggerMode(mode: int) -> None:
        """Any of ale-py's modes, 0 to 2: cule logs nothing."""
        _index("a logger's mode", mode, 0, 2)

    # Sound ----------------------------------------------------------------------------------------

    @_reads
    def getAudio(self, buffer: np.ndarray | None = None) -> np.ndarray:
        """(512,) uint8: the samples of the last frame that was played; zeros before the first.

        They are zeros, too, if the setting `sound_obs` was off when the ROM was loaded.
        """
        return _out(self._console.sound(), buffer)

    @_reads
    def getAudioSize(self) -> int:
        """512."""
        return _core.FRAME_SAMPLES

    # Looking --------------------------------------------------------------------------------------

    @_looks
    def lives(self) -> int:
        """The lives that are left, after the last reset or step."""
        return int(self._consoles.engine.tensors["lives"][0])

    def game_over(self, *, with_truncation: bool = True) -> bool:
        """Whether the last step ended the episode."""
        terminated, truncated = self._ended()
        return terminated or (with_truncation and truncated)

    def game_truncated(self) -> bool:
        """Whether the last step truncated the episode."""
        return self._ended()[1]

    @_looks
    def getFrameNumber(self) -> int:
        """Frames since the console was seeded."""
        return int(self._consoles.engine.tensors["frame_numbers"][0])

    @_looks
    def getEpisodeFrameNumber(self) -> int:
        """Frames of this episode."""
        return int(self._consoles.engine.tensors["episode_frame_numbers"][0])

    @_looks
    def getRAM(self, ram: np.ndarray | None = None) -> np.ndarray:
        """(128,) uint8."""
        return _out(self._consoles.engine.tensors["ram"][0].cpu().numpy().copy(), ram)

    @_reads
    def getRAMSize(self) -> int:
        """128."""
        return _core.RAM_BYTES

    @_reads
    def getScreenDims(self) -> tuple[int, int]:
        """Height and width of the screen."""
        return self._height, _core.LINE_PIXELS

    def _screen(self) -> np.ndarray:
        """Palette indices; on a CPU the console's own."""
        return self._consoles.engine.contents.screen(0).cpu().numpy()

    @_looks
    def getScreen(self, screen_data: np.ndarray | None = None) -> np.ndarray:
        """(height, 160) uint8: palette indices of the last frame."""
        return _out(self._screen().copy(), screen_data)

    @_looks
    def getScreenRGB(self, screen_data: np.ndarray | None = None) -> np.ndarray:
        """(height, 160, 3) uint8: the last frame in color."""
        return _out(np.take(self._colors, self._screen(), axis=0), screen_data)

    @_looks
    def getScreenGrayscale(self, screen_data: np.ndarray | None = None) -> np.ndarray:
        """(height, 160) uint8: the last frame in grey."""
        return _out(np.take(self._greys, self._screen()), screen_data)

    def saveScreenPNG(self, path: str) -> None:
        """Writes the last frame to a file, (height, 320) pixels, each twice as ale-py does.

        Raises:
            RuntimeError: the file cannot be written.
        """
        import cv2  # which only pictures need

        encoded = cv2.imencode(".png", np.repeat(self.getScreenRGB()[..., ::-1], 2, axis=1))[1]
        try:
            Path(path).write_bytes(encoded.tobytes())
        except OSError as problem:
            raise Failed(f"expected to write a picture to {path}: {problem.strerror}") from problem

    def getMinimalActionSet(self) -> list[int]:
        """The numbers (see cule.ACTIONS) of the actions that have an effect in the game."""
        return list(action_numbers(self._game, "minimal"))

    def getLegalActionSet(self) -> list[int]:
        """The numbers (see cule.ACTIONS) of all actions that the game allows."""
        return list(action_numbers(self._game, "full"))

    def getAvailableModes(self) -> list[int]:
        """The game's modes."""
        return list(self._game.modes)

    def getAvailableDifficulties(self) -> list[int]:
        """The game's difficulties."""
        return list(self._game.difficulties)

    def cloneState(self, *, include_rng: bool = False) -> State:
        """The console's state, without the random numbers of sticky actions by default."""
        return clone_state(self._env, include_rng=include_rng)

    def restoreState(self, state: State) -> None:
        """Restores a state from cloneState; `lives()` is that of the state after the next step."""
        self._restore(state)

    def cloneSystemState(self) -> State:
        """The console's state with its random numbers: it plays the same after each restore."""
        return clone_state(self._env, include_rng=True)

    def restoreSystemState(self, state: State) -> None:
        """Restores a state from cloneSystemState; `lives()` is its own after the next step."""
        self._restore(state)
