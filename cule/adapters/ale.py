"""ale-py's ALEInterface alone: `from cule.adapters.ale import ALEInterface`.

It is one console without an env: settings, a ROM, frames.
"""

from __future__ import annotations

import os
from typing import Any

from cule.env.ale_settings import AleSettings
from cule.env.ale_view import AleView
from cule.errors import Failed
from cule.rom import game_of_rom
from cule.single_env import SingleAtariEnv

# These need no ROM.
_SETTINGS = (
    "getBool", "getFloat", "getInt", "getString", "setBool", "setFloat", "setInt", "setString",
)  # fmt: skip


class ALEInterface:
    """One console, with the methods of ale-py's ALEInterface, which AleView describes.

    `loadROM` comes first, as in ale-py; what needs a console raises RuntimeError before it.

    Args:
        device: "cpu", where one console is fastest, or a GPU.
    """

    isSupportedROM = staticmethod(AleView.isSupportedROM)
    setLoggerMode = staticmethod(AleView.setLoggerMode)

    def __init__(self, device: str = "cpu"):
        self.settings, self._device = AleSettings(), device
        self._env: SingleAtariEnv | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(AleView, name):
            raise AttributeError(f"expected a method of ale-py's ALEInterface, got {name!r}")
        if self._env is not None:
            return getattr(self._env.ale, name)
        if name in _SETTINGS:
            return getattr(AleView, name).__get__(self)
        raise Failed(f"expected loadROM() before {name}()")

    def loadROM(self, rom: str | os.PathLike[str]) -> None:
        """Turns a console with this ROM on, in the settings as they are now.

        Raises:
            RuntimeError: the file is no ROM that cule knows, or cule cannot do what a setting asks
                for.
        """
        game = game_of_rom(rom)
        if game is None:
            raise Failed(f"expected the ROM of one of cule.list_games(), got {os.fspath(rom)!r}")
        self.settings.check()
        sound = self.settings.get("sound_obs", bool)
        if self._env is None or (self._env.env.games[0], self._env.sound_obs) != (game, sound):
            self.close()
            self._env = SingleAtariEnv(
                game.name, self._device, obs_type="rgb", frameskip=1, full_action_space=True,
                noop_max=0, use_fire_reset=False, reset_pool_size=0, reward_clipping=False,
                num_threads=1, repeat_action_probability=0.0, sound_obs=sound,
            )  # fmt: skip
            self._env.ale.settings = self.settings
        self._env.ale.loadROM(rom)

    def close(self) -> None:
        """Frees the console."""
        if self._env is not None:
            self._env.close()
            self._env = None
