"""Methods of AtariEnv that look at its consoles: RAM, screens, pictures."""

from __future__ import annotations

from typing import Any

import torch

from cule.env.consoles import HasConsoles
from cule.env.guard import reads
from cule.env.outputs import Array
from cule.env.screens import colored
from cule.env.states import env_ids_of
from cule.errors import InvalidValue
from cule.facts.palette import grey_palette, rgb_palette


@reads
def get_ram(env: HasConsoles) -> Array:
    """(num_envs, 128) uint8: the consoles' RAM, $80 to $FF."""
    env.consoles.check_shown("get_ram")
    return env.consoles.outputs.give(env.consoles.engine.tensors["ram"].clone())


@reads
def get_sound(env: HasConsoles, env_ids: Any = None) -> Array:
    """(n, frameskip, 512) uint8: some envs' (None: all) samples of each frame of the last step.

    There are 30,720 a second, and 128 is silence. After a reset, and in an env that
    was given a state, the frames before the newest are silent.

    Raises:
        TypeError: `env_ids` is not a list of envs.
        ValueError: the env was made without sound_obs=True.
    """
    env.consoles.check_shown("get_sound")
    engine = env.consoles.engine
    if not engine.options.sound:
        raise InvalidValue("expected an env with sound_obs=True for get_sound(), got one without")
    chosen = env_ids_of(env.consoles, env_ids)
    return env.consoles.outputs.give(engine.tensors["sounds"][chosen])


@reads
def get_objects(env: HasConsoles, env_ids: Any = None) -> Array:
    """(n, 256, 7) int16: some envs' (None: all) objects in the last two frames, then rows of zeros.

    A row has the object's kind (its name is `cule.objects(game)[kind]`; 0 is unknown), the column
    and the line of its first pixel, width, height, color (a number of the palette) and in which of
    the two frames it is visible: 1, the last; 2, the one before it; 3, both. docs/api.md says how
    boxes are found. `info["objects_left_out"]` is not 0 in an env with more objects.

    Raises:
        TypeError: `env_ids` is not a list of envs.
        ValueError: the env was made without "objects" in obs_type.
    """
    env.consoles.check_shown("get_objects")
    engine = env.consoles.engine
    if not engine.options.objects:
        raise InvalidValue(
            "expected an env with 'objects' in obs_type for get_objects(), got one without"
        )
    chosen = env_ids_of(env.consoles, env_ids)
    return env.consoles.outputs.give(engine.tensors["objects"][chosen])


@reads
def get_screen(env: HasConsoles) -> Array:
    """(num_envs, height, 160) uint8: palette indices of the last emulated frame.

    If the games' screens differ in height, the smaller ones are filled with rows of zeros.
    """
    env.consoles.check_shown("get_screen")
    return env.consoles.outputs.give(env.consoles.engine.contents.screens())


@reads
def get_screen_rgb(env: HasConsoles) -> Array:
    """(num_envs, height, 160, 3) uint8: the last emulated frame in color."""
    env.consoles.check_shown("get_screen_rgb")
    return env.consoles.outputs.give(rgb_screens(env))


@reads
def rgb_screens(env: HasConsoles, env_ids: torch.Tensor | None = None) -> torch.Tensor:
    """(n, height, 160, 3) uint8, on the device: some envs' (None: all) last frames in color."""
    env.consoles.check_shown("get_screen_rgb")
    chosen = None if env_ids is None else env_ids_of(env.consoles, env_ids)
    return colored(env.consoles.engine, rgb_palette, chosen)


@reads
def get_screen_grayscale(env: HasConsoles) -> Array:
    """(num_envs, height, 160) uint8: the last emulated frame in grey."""
    env.consoles.check_shown("get_screen_grayscale")
    return env.consoles.outputs.give(
        colored(env.consoles.engine, grey_palette)[..., 0].contiguous()
    )


@reads
def render(env: HasConsoles) -> Any:
    """The screens as `render_mode` says; "mosaic": (rows * height, columns * 320, 3) uint8."""
    env.consoles.check_idle("render")
    if env.consoles.renderer.shows:
        env.consoles.check_started("render")
    return env.consoles.renderer.render()
