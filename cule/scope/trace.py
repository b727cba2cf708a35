"""The JSON of a trace that torch.profiler wrote.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Most
events are calls of operators, which Kineto writes with the same keys in the same order. A regular
expression takes those out, in half the time that a JSON decoder needs; what is left is JSON.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cule.disk.files import opened
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.scope.events import check_time

# A trace packs to a 10th or 20th; what packs to less than a 50th, besides small ones, is none.
MOST_PACKED, SMALL_BYTES, BLOCK_BYTES = 50, 1 << 24, 1 << 16
_PROBLEMS = (EOFError, zlib.error, gzip.BadGzipFile, *DAMAGE)

# An operator's call as Kineto writes it, with the comma after it: name, thread, begin and length in
# microseconds. Where lines end depends on torch's version. A string of JSON has no quotes inside
# without a backslash before them.
_operators = re.compile(
    rb'\{[ \n]*"ph": "X",[ \n]+"cat": "cpu_op",[ \n]+"name": "([^"\\\x00-\x1f]*)",[ \n]+'
    rb'"pid": \d+,[ \n]+"tid": (-?\d+),[ \n]+"ts": (\d+\.\d+),[ \n]+"dur": (\d+\.\d+)[ \n]*,'
    rb'[ \n]*"args": \{[^{}\\]*\}[ \n]*\}[ \n]*,'
)


_END = b"\n  },\n"  # of an event; a string of JSON has no end of a line


class Operators(NamedTuple):
    """Calls of operators.

    Attributes:
        names: the different names.
        name: (n,) int64, the place of each call's name.
        threads: (n,) int64, the number of its thread, as Kineto has it.
        begins: (n,) float64, microseconds.
        lengths: (n,) float64, microseconds.
    """

    names: list[str]
    name: np.ndarray
    threads: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray


def read_trace(path: Path) -> dict[str, Any]:
    """The trace as JSON has it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off or no trace.
    """
    try:
        return _trace_of(b"".join(_unpacked(path)))
    except _PROBLEMS as problem:
        raise _no_trace(path, problem) from problem


def read_operators(path: Path) -> tuple[dict[str, Any], Operators]:
    """The trace without the calls of operators, and these; those that look unusual stay in it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off or no trace.
    """
    rest, found = list[bytes](), list[list[np.ndarray]]()
    places: dict[bytes, int] = {}
    threads: dict[bytes, int] = {}
    try:
        for events in _unpacked(path):
            pieces = _operators.split(events)
            rest += pieces[::5]
            names, numbers = pieces[1::5], pieces[2::5]
            for name in dict.fromkeys(names):
                places.setdefault(name, len(places))
            threads.update((one, int(one)) for one in set(numbers))
            found.append([
                np.fromiter(map(places.__getitem__, names), np.int64),
                np.fromiter(map(threads.__getitem__, numbers), np.int64),
                np.fromiter(map(float, pieces[3::5]), np.float64),
                np.fromiter(map(float, pieces[4::5]), np.float64),
            ])  # fmt: skip
        columns = (np.concatenate(column) for column in zip(*found, strict=True))
        trace = _trace_of(b"".join(rest))
        return trace, Operators([name.decode() for name in places], *columns)
    except _PROBLEMS as problem:
        raise _no_trace(path, problem) from problem


def _no_trace(path: Path, problem: Exception) -> InvalidValue:
    return InvalidValue(f"expected a trace of torch.profiler, got {path}: {problem}")


def _trace_of(content: bytes) -> dict[str, Any]:
    trace = json.loads(content.decode())
    if not isinstance(trace["traceEvents"], list):
        raise InvalidValue("its traceEvents are no list")
    check_time(trace.setdefault("baseTimeNanoseconds", 0))
    return dict(trace)


def _unpacked(path: Path) -> Iterator[bytes]:
    """The content of a packed trace, in pieces that end where an event does.

    There is always one. Small ones, as what is made of a piece then fits into a processor's cache.

    Raises:
        EOFError, OSError, ValueError, zlib.error: it is cut off, or is no trace.
    """
    with opened(path) as packed, gzip.open(packed) as file:
        most = SMALL_BYTES + MOST_PACKED * os.fstat(packed.fileno()).st_size
        piece, size = list[bytes](), 0
        while block := file.read(BLOCK_BYTES):
            size += len(block)
            if size > most:
                raise InvalidValue(f"unpacked it has more than {most:,} bytes")
            before, end, after = block.rpartition(_END)
            if end:
                yield b"".join((*piece, before, end))
                piece.clear()
            piece.append(after)
        yield b"".join(piece)
