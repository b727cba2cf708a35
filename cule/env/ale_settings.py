"""The settings of ale-py's ALEInterface: their names, types, defaults, and how they are read.

As in ale-py 0.12.1, `loadROM` applies them, and any type can be read as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cule import arguments
from cule.errors import Failed, InvalidType, shown

Setting = bool | int | float | str
_INT = np.iinfo(np.int32)
DEFAULTS: dict[str, Setting] = {
    "color_averaging": False, "display_screen": False, "restricted_action_set": False,
    "run_length_encoding": True, "send_rgb": False, "sound": False, "sound_obs": False,
    "truncate_on_loss_of_life": False,
    "frame_skip": 1, "fragsize": 64, "max_num_frames": 0, "max_num_frames_per_episode": 0,
    "paddle_max": -1, "paddle_min": -1, "random_seed": -1, "reward_max": int(_INT.max),
    "reward_min": int(_INT.min), "system_random_seed": 4753849,
    "repeat_action_probability": 0.25,
    "cpu": "low", "record_screen_dir": "", "record_sound_filename": "", "rom_file": "",
}  # fmt: skip
# What cule can do in another way than by default. The rest has to be as it is.
APPLIED = (
    "frame_skip", "max_num_frames_per_episode", "random_seed", "repeat_action_probability",
    "rom_file", "sound_obs",
)  # fmt: skip


def _text(value: Setting) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


class AleSettings:
    """Settings by their names.

    Args:
        changed: those that are not at their defaults.
    """

    def __init__(self, **changed: Setting):
        self.values = DEFAULTS | changed

    def get(self, name: Any, kind: type) -> Any:
        """A setting as an int, float, bool or str.

        There is a value for names that are none, too: -1, -1.0, False or "".

        Raises:
            TypeError: the name is no string.
        """
        if not isinstance(name, str):
            raise InvalidType(f"expected the name of a setting, got {shown(name)}")
        if name not in self.values:
            return {int: -1, float: -1.0, bool: False, str: ""}[kind]
        text = _text(self.values[name])
        if kind in (str, bool):
            return text if kind is str else text in ("1", "true")
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        return int(number) if kind is int else float(np.float32(number))

    def set(self, name: Any, value: Any, kind: type) -> None:
        """Changes a setting of this type.

        Raises:
            RuntimeError: there is no such setting, or it has another type.
            TypeError: the name is no string, or the value has another type.
        """
        self.get(name, kind)
        given = self._checked(value, kind)
        if type(self.values.get(name)) is not kind:
            names = ", ".join(key for key in self.values if type(self.values[key]) is kind)
            raise Failed(f"expected a setting of type {kind.__name__} ({names}), got {name!r}")
        self.values[name] = given

    @staticmethod
    def _checked(value: Any, kind: type) -> Setting:
        if kind is int and isinstance(value, (bool, int, np.integer)):
            if _INT.min <= int(value) <= _INT.max:
                return int(value)
        elif kind is float and isinstance(value, (bool, int, float, np.number)):
            return float(value)
        elif kind in (bool, str) and isinstance(value, (bool, str)) and isinstance(value, kind):
            return value
        raise InvalidType(f"expected a value of type {kind.__name__}, got {shown(value)}")

    def check(self) -> None:
        """Checks that cule can do what the settings ask for.

        Raises:
            RuntimeError: it cannot.
            ValueError: a number is out of its range.
        """
        for name, value in self.values.items():
            if name not in APPLIED and value != DEFAULTS[name]:
                raise Failed(
                    f"expected {name} to be {DEFAULTS[name]!r}, as cule has nothing else, got "
                    f"{value!r}"
                )
        checks: tuple[tuple[str, Callable[..., object]], ...] = (
            ("repeat_action_probability", arguments.probability),
            ("frame_skip", arguments.integer),
            ("max_num_frames_per_episode", partial(arguments.integer, least=0)),
        )
        for name, check in checks:
            check(name, self.values[name])

    @property
    def seed(self) -> int | None:
        """`random_seed`; None: another one each time."""
        seed = int(self.values["random_seed"])
        return None if seed == -1 else seed % 2**32

    @property
    def max_frames(self) -> int:
        """The frames of the longest episode."""
        return int(self.values["max_num_frames_per_episode"]) or arguments.MOST
