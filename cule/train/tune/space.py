"""Spaces of a search: settings with their candidates."""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import torch

from cule.errors import InvalidValue
from cule.train.distributed import sm_partition as partition
from cule.train.layout import Layout
from cule.train.lowering.making import preview
from cule.train.lowering.settings_read import Make

Space = Mapping[str, Sequence[Any]]
# Factors of the number of envs, by device.
ENVS = {"cuda": (0.25, 0.5, 1, 2, 4, 8, 16), "cpu": (0.25, 0.5, 1, 2, 4)}
CHUNKS = (16_384, 65_536, 262_144)
# What a candidate of a type has to be, for messages.
WANTED = {
    int: "a whole number", float: "a number", bool: "True or False", type(None): "None",
}  # fmt: skip
# Multiprocessors come in eights on new GPUs.
EIGHT = 8
# Between two candidates; not that of a layout such as decoupled:[0,2]+[1].
COMMA = re.compile(r",(?![^\[]*\])")
# The setting that names a layout, as a text.
LAYOUT = "layout"


def _layouts(args: Any, size: int, quarters: Sequence[int]) -> Sequence[str]:
    """The layouts of as many GPUs that may be faster than the one that is set."""
    layout = Layout.parse(args.layout)
    if layout.each > 1 or layout.limited:
        return (args.layout,)
    apart = [f"apart:{count}" for count in quarters if partition.is_there()]
    decoupled = [f"decoupled:{size - learn}+{learn}" for learn in range(1, size)]
    return tuple(dict.fromkeys((args.layout, "together", *apart, *decoupled)))


def default_space(make: Make, args: Any, device: torch.device, size: int = 1) -> Space:
    """The space that is searched by default: settings that change an algorithm least.

    These are the envs and the lag where the algorithm has one. On a GPU they are also the layout
    and the chunks of gradients. Batches are not among them, as the fastest would always be the
    largest; nor is how many multiprocessors emulate, which a training finds itself
    (distributed/sm_autotuner.py).

    Args:
        make: makes the algorithm from settings and a context.
        args: the settings, filled for the device.
        device: where it computes.
        size: how many processes there are.
    """
    space: dict[str, Sequence[Any]] = {}
    envs = [args.num_envs * factor for factor in ENVS[device.type]]
    space["num_envs"] = [int(count) for count in envs if count >= 1 and count == int(count)]
    tried = [preview(make, dataclasses.replace(args, lag=lag), device) for lag in (0, 1)]
    learnings = [algorithm.learning() for algorithm in tried]
    lags = [learning.lag for learning in learnings if learning.accumulate == 1]
    if lags == [0, 1]:
        space["lag"] = (0, 1)
    if device.type == "cuda":
        if 1 in lags:
            count = torch.cuda.get_device_properties(device).multi_processor_count
            quarters = [count * part // 4 // EIGHT * EIGHT for part in (1, 2, 3)]
            space[LAYOUT] = _layouts(args, size, quarters)
        space["learner_chunk"] = CHUNKS
    return space


def reserves_for_nothing(
    make: Make, args: Any, settings: Mapping[str, Any], device: torch.device
) -> bool:
    """Whether multiprocessors or GPUs emulate beside learning, but nothing learns beside it."""
    tried = dataclasses.replace(args, **settings)
    reserves = tried.multiprocessors or Layout.parse(tried.layout).lags
    return bool(reserves) and not preview(make, tried, device).learning().beside


def _kinds(hint: Any) -> Sequence[Any]:
    """The types that a type hint allows."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _searchable(name: str, hint: Any) -> bool:
    """Whether a setting has numbers, choices or layouts as its values."""
    plain = (int, float, bool, type(None))
    return name == LAYOUT or all(
        kind in plain or get_origin(kind) is Literal for kind in _kinds(hint)
    )


def _value(name: str, hint: Any, text: str) -> Any:
    """The value that a text means.

    Raises:
        ValueError: it means none.
    """
    if name == LAYOUT:
        return str(Layout.parse(text))
    for kind in _kinds(hint):
        if kind is type(None) and text == "None":
            return None
        if get_origin(kind) is Literal and text in get_args(kind):
            return text
        if kind is bool and text in ("True", "False"):
            return text == "True"
        if kind in (int, float):
            with suppress(ValueError):
                return kind(text)
    wanted = " or ".join(WANTED.get(kind) or " or ".join(get_args(kind)) for kind in _kinds(hint))
    raise InvalidValue(f"expected a candidate of {name} to be {wanted}, got {text!r}")


def _hints(settings: type) -> dict[str, Any]:
    hints = get_type_hints(settings)
    names = {field.name for field in dataclasses.fields(settings)}
    return {name: hint for name, hint in hints.items() if name in names and _searchable(name, hint)}


def read_space(words: Sequence[str], settings: type) -> Space:
    """The space that words such as "num_envs=512,1024" name.

    Raises:
        ValueError: a word is wrong.
    """
    hints, space = _hints(settings), {}
    for word in words:
        name, equals, texts = word.partition("=")
        name = name.strip("-").replace("-", "_")
        if not equals or not texts:
            raise InvalidValue(f"expected --search to have SETTING=VALUE,VALUE,..., got {word!r}")
        check_name(name, settings)
        space[name] = [_value(name, hints[name], text) for text in COMMA.split(texts)]
    return space


def check_name(name: str, settings: type) -> None:
    """Checks that a setting can be searched.

    Raises:
        ValueError: there is no such setting, or its values are no numbers, choices or layouts.
    """
    hints = _hints(settings)
    if name not in hints:
        close = difflib.get_close_matches(name, hints, n=1)
        hint = f"; the closest is {close[0]}" if close else ""
        raise InvalidValue(
            f"expected a setting with numbers or choices to search, got {name!r}{hint}"
        )


def check_space(space: Space, settings: type) -> None:
    """Checks a space.

    Raises:
        ValueError: a setting cannot be searched, or has no candidates.
    """
    for name, values in space.items():
        check_name(name, settings)
        if not values:
            raise InvalidValue(f"expected candidates of {name}, got none")
