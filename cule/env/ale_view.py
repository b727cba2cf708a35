"""`env.unwrapped.ale` of ale-py's single env, answered by cule, for code written for that env.

It has the methods that wrappers of such envs call: stable-baselines3's and CleanRL's call lives(),
and gymnasium's AtariPreprocessing also reads the screens. States can be restored; all other methods
only read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from cule import _core
from cule.console import action_numbers
from cule.env.consoles import HasConsoles
from cule.env.guard import reads
from cule.env.states import clone_state
from cule.errors import InvalidValue
from cule.facts.palette import grey_palette, rgb_palette
from cule.state import State


def _out(values: np.ndarray, into: np.ndarray | None) -> np.ndarray:
    """The values, copied into the caller's array if there is one."""
    if into is None:
        return values
    if into.size != values.size:
        raise InvalidValue(
            f"expected an array of shape {values.shape} to write to, got one of {into.shape}; "
            "where a wrapper made it in the shape of observations, make the env with obs_type='rgb'"
        )
    np.copyto(into.reshape(values.shape), values)
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


class AleView:
    """Reads one console under the names of ale-py's ALEInterface.

    Args:
        env: an env of one console.
        ended: whether the last step (terminated, truncated) the episode.
        restore: restores a state.
    """

    def __init__(
        self,
        env: HasConsoles,
        ended: Callable[[], tuple[bool, bool]],
        restore: Callable[[State], None],
    ):
        self._env, self._consoles, self._guard = env, env.consoles, env.consoles.guard
        self._ended, self._restore = ended, restore
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
            f"expected one of what cule's env.unwrapped.ale has ({offered}), got {name!r}: "
            "cule has no ALEInterface, and its env's own methods do the rest"
        )

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
