"""The command that repeats the training of a row."""

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
    """The command that repeats a training.

    Args:
        algorithm: the algorithm, with its settings.

    Returns:
        The command line of this process. If that cannot be repeated, the command of the algorithm's
        module with all settings that differ from their defaults; None: the module is no program.
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
        # The settings that --tuned has chosen are among the changed ones.
        if value != usual and field.name != "tuned":
            changed[field.name] = value
    return starting(["-m", module, *options_of(changed)])
