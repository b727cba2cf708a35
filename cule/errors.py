"""What cule says no to: errors whose message is a sentence for the one who called.

The message says what was expected and what came. Programs print it as one line. Errors of other
people's code, such as an algorithm's loss, are none of these, and keep their traceback.
"""

from __future__ import annotations

import os
import re
import reprlib
import sys
import sysconfig
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from gymnasium.error import Error

_PACKAGE = str(Path(__file__).parent) + os.sep
# What errors about a lack of memory say, as torch's on a CPU are of no type of their own.
NO_MEMORY = ("fit in the memory", "out of memory", "allocate memory", "memory budget")
# What the machine has not: a file, room on a disk, memory, a package.
SHORTAGES = (OSError, MemoryError, ImportError, torch.OutOfMemoryError)


class Refusal(Exception):
    """Something is wrong that the message explains in full; no bug of cule."""


class InvalidValue(ValueError, Error, Refusal):
    """An argument has a wrong value."""


class InvalidType(TypeError, Error, Refusal):
    """An argument has a wrong type, or there is no such argument."""


class MissingPackage(ImportError, Refusal):
    """A package is not installed, or is too old."""


class MissingMethod(NotImplementedError, Refusal):
    """A class leaves out what it has to define."""


class MissingPart(AttributeError, ValueError):
    """There is no attribute of this name: a slip in somebody's code, who has to see its line."""


class MissingFile(FileNotFoundError, Refusal):
    """There is no such file."""


class Failed(RuntimeError, Refusal):
    """Something cannot be done now or here."""


class OutOfMemory(torch.OutOfMemoryError, Refusal):
    """A device has too little memory."""


class _Shown(reprlib.Repr):
    """Shortens what is long. Tensors are described, as printing one may read freed memory."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 200
        self.maxlist = self.maxtuple = self.maxdict = 8

    def repr1(self, x: Any, level: int) -> str:
        """One value, or part of one."""
        if not isinstance(x, torch.Tensor):
            return super().repr1(x, level)
        shape = "" if x.is_nested else f" and shape {tuple(x.shape)}"
        return f"a {type(x).__name__} of {x.dtype}{shape} on {x.device}"


shown = _Shown().repr
"""A value as messages name it, in a line of some hundred characters at most."""


def _place(frames: TracebackType | None) -> str | None:
    """The innermost line outside of cule, Python and torch; None: there is none."""
    found = None
    while frames is not None:
        code, module = frames.tb_frame.f_code, frames.tb_frame.f_globals.get("__name__", "")
        library = module.partition(".")[0] in {*sys.stdlib_module_names, "torch"}
        # A dataclass's constructor is in no file: what calls it is what somebody has written.
        generated = code.co_name == "__init__" and code.co_filename.startswith("<")
        if not (library or generated or code.co_filename.startswith(_PACKAGE)):
            found = f"{Path(code.co_filename).name}:{frames.tb_lineno}, in {code.co_name}"
        frames = frames.tb_next
    return found


def is_own_frame(line: str) -> bool:
    """Whether a line of a traceback names a file outside of cule, Python and installed packages."""
    found = re.match(r'  File "([^"]+)", line \d+', line)
    libraries = (_PACKAGE, sysconfig.get_path("stdlib") + os.sep, "<frozen ")
    if found is None or "site-packages" in line:
        return False
    return not found[1].startswith(libraries)


def is_others(problem: BaseException) -> bool:
    """Whether code outside of cule, Python and torch has raised or passed on an error."""
    return _place(problem.__traceback__) is not None


def lacks_memory(problem: BaseException) -> bool:
    """Whether an error says that there is not enough memory."""
    return isinstance(problem, (torch.OutOfMemoryError, MemoryError)) or any(
        words in str(problem) for words in NO_MEMORY
    )


def sentence_of(
    problem: BaseException, shortages: tuple[type[Exception], ...] = SHORTAGES
) -> str | None:
    """The sentence of a program about an error; None: its author needs the traceback.

    Args:
        problem: the error, as it was caught.
        shortages: which errors are the machine's, where no code of other people raised them. A
            lack of memory is the machine's, whoever has asked for it.
    """
    place = _place(problem.__traceback__)
    if not isinstance(problem, Refusal):
        if not (lacks_memory(problem) or (isinstance(problem, shortages) and not place)):
            return None
        line = str(problem).partition("\n")[0] or type(problem).__name__
    else:
        line = str(problem)
    return f"{line} ({place})" if place else line
