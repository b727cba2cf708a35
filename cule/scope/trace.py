"""The JSON of a trace that torch.profiler wrote, one event after the other.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Most
events are calls of operators, which Kineto writes with the same keys in the same order. Those are
read by one regular expression, which takes a third of a JSON decoder's time; all others by that.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cule.disk.files import opened
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.scope.events import check_time

# A trace packs to a 10th or 20th; what packs to less than a 50th, besides small ones, is none.
MOST_PACKED, SMALL_BYTES = 50, 1 << 24

# Called with an operator's name, thread, begin and length in microseconds.
OnOperator = Callable[[str, int, float, float], object]


def read_trace(
    path: Path, on_event: Callable[[Any], object], on_operator: OnOperator | None = None
) -> dict[str, Any]:
    """Reads a trace.

    Args:
        path: its file.
        on_event: called with each entry of its traceEvents.
        on_operator: called instead for calls of operators that Kineto wrote as usual; None: they
            are entries as all others.

    Returns:
        The rest of it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off or no trace, which may be found after some events.
    """
    try:
        trace = _scan(_unpacked(path).decode(), on_event, on_operator)
        if "traceEvents" not in trace:
            raise InvalidValue("it has no traceEvents")
        check_time(trace.setdefault("baseTimeNanoseconds", 0))
    except (EOFError, zlib.error, gzip.BadGzipFile, *DAMAGE) as problem:
        raise InvalidValue(
            f"expected a trace of torch.profiler, got {path}: {problem}"
        ) from problem
    return trace


_gap, _decode = re.compile(r"[ \t\n\r]*").match, json.JSONDecoder().raw_decode
_between = re.compile(r"[ \t\n\r]*([,\]])[ \t\n\r]*").match
_CORRELATION = '"correlation"'
_operator = re.compile(
    r'\{\n    "ph": "X",\n    "cat": "cpu_op",\n    "name": "([^"\\\x00-\x1f]*)",\n'
    r'    "pid": \d+,\n'
    r'    "tid": (-?\d+),\n    "ts": (\d+\.\d+),\n    "dur": (\d+\.\d+)[ \n]*,\n'
    r'    "args": \{([^{}\\]*)\}[ \n]*\}[ \n]*([,\]])[ \n]*'
).match


def _after(content: str, place: int) -> tuple[str, int]:
    """The next character that is no space, "" at the end, and its place."""
    found = _gap(content, place)
    assert found is not None
    return content[found.end() : found.end() + 1], found.end()


def _past(content: str, place: int, wanted: str) -> int:
    """The place after a character that has to come next, but for spaces, and after spaces.

    Raises:
        ValueError: another one comes.
    """
    character, place = _after(content, place)
    if character != wanted:
        raise json.JSONDecodeError(f"Expecting {wanted!r}", content, place)
    return _after(content, place + 1)[1]


def _scan(
    content: str, on_event: Callable[[Any], object], on_operator: OnOperator | None
) -> dict[str, Any]:
    """Reads an object, of which the list of events is not kept.

    Raises:
        RecursionError, ValueError: it is no such object.
    """
    found: dict[str, Any] = {}
    place, last = _past(content, 0, "{"), "{"
    while last != "}":
        key, place = _decode(content, place)
        place = _past(content, place, ":")
        if key == "traceEvents":
            found[key], place = [], _scan_list(content, place, on_event, on_operator)
        else:
            found[key], place = _decode(content, place)
        last, place = _after(content, place)
        place = _past(content, place, "}" if last == "}" else ",")
    if place != len(content):
        raise json.JSONDecodeError("Extra data", content, place)
    return found


def _scan_list(
    content: str, place: int, on_event: Callable[[Any], object], on_operator: OnOperator | None
) -> int:
    """Calls `on_event` or `on_operator` with each entry of a list; returns the place after it.

    Raises:
        RecursionError, ValueError: it is no list.
    """
    place = _past(content, place, "[")
    if _after(content, place)[0] == "]":
        return _past(content, place, "]")
    while True:
        found = _operator(content, place) if on_operator is not None else None
        if found is not None and on_operator is not None and _CORRELATION not in found[5]:
            name, thread, begin, length, _, last = found.groups()
            on_operator(name, int(thread), float(begin), float(length))
        else:
            event, place = _decode(content, place)
            on_event(event)
            found = _between(content, place)
            if found is None:
                raise json.JSONDecodeError("Expecting ',' delimiter", content, place)
            last = found[1]
        place = found.end()
        if last == "]":
            return place


def _unpacked(path: Path) -> bytes:
    """The content of a packed trace.

    Raises:
        EOFError, OSError, ValueError, zlib.error: it is cut off, or is no trace.
    """
    with opened(path) as packed, gzip.open(packed) as file:
        most = SMALL_BYTES + MOST_PACKED * os.fstat(packed.fileno()).st_size
        content = file.read(most + 1)
    if len(content) > most:
        raise InvalidValue(f"unpacked it has more than {most:,} bytes")
    return content
