"""The command that trains again what a row is about."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from cule.errors import InvalidValue
from cule.programs.results import command_line, starting
from cule.train.algorithm import Algorithm
from cule.train.command import options_of
from cule.train.import_path import module_of, program_in
from cule.train.settings import Args


def command_of(algorithm: Algorithm[Any]) -> str | None:
    """The command that trains what this algorithm trains.

    It is the program's. Where that cannot be repeated, it is that of the algorithm's module, with
    the settings that differ from their defaults; None if the module is no program.
    """
    return command_line() or _from_settings(type(algorithm), algorithm.args)


def _from_settings(kind: type[Algorithm[Any]], args: Args) -> str | None:
    module = module_of(kind)
    loaded = sys.modules.get(module)
    if loaded is None or not hasattr(loaded, "main"):
        return None
    try:
        same = program_in(module) == (kind, type(args))
    except InvalidValue:  # it has several algorithms
        return None
    if not same:
        return None
    changed = {}
    for field in dataclasses.fields(args):
        factory, value = field.default_factory, getattr(args, field.name)
        usual = field.default if factory is dataclasses.MISSING else factory()
        # What --tuned has found is among the others.
        if value != usual and field.name != "tuned":
            changed[field.name] = value
    return starting(["-m", module, *options_of(changed)])
