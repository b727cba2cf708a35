"""A recording as a trace for Perfetto and chrome://tracing, with operations as tracks.

It is Kineto's own trace, with a track of operations and one of iterations for each thread with
annotations, and one of operations for each stream of a GPU. Holistic Trace Analysis reads it: it
wants events of the category "user_annotation" with whole numbers as threads, "ProfilerStep#N" for
iterations, and `distributedInfo` with the rank.
https://github.com/facebookresearch/HolisticTraceAnalysis
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cule.disk.files import replacing
from cule.errors import InvalidValue
from cule.scope.events import KINDS, Process, Work
from cule.scope.lanes import Lane, assemble
from cule.scope.storage import Part, activities_path
from cule.scope.trace import read_trace

# Tracks of ours have numbers that no thread or stream has.
_FIRST_TRACK, _FIRST_STREAM = 900_000_000, 950_000_000


def _event(name: str, start: int, end: int, base: int, track: tuple[int, int], **more: Any) -> dict:
    return {
        "ph": "X", "cat": "user_annotation", "name": name, "pid": track[0], "tid": track[1],
        "ts": (start - base) / 1e3, "dur": (end - start) / 1e3, "args": more,
    }  # fmt: skip


def _title(name: str, track: tuple[int, int], order: int) -> list[dict]:
    where = {"ph": "M", "pid": track[0], "tid": track[1], "ts": 0}
    return [
        {**where, "name": "thread_name", "args": {"name": name}},
        {**where, "name": "thread_sort_index", "args": {"sort_index": order}},
    ]


def _spans(lane: Lane, process: Process) -> Iterator[tuple[str, str, int, int]]:
    """The annotations of a lane: kind, name, start, end."""
    opened: list[tuple[str, str, int]] = []
    for mark in lane.thread.marks:
        if mark.begins:
            opened.append((mark.kind, mark.name, mark.time))
            continue
        for place in range(len(opened) - 1, -1, -1):
            if opened[place][:2] == (mark.kind, mark.name):
                yield mark.kind, mark.name, opened.pop(place)[2], mark.time
                break
    for kind, name, start in opened:
        yield kind, name, start, process.end


def _lane_events(
    lane: Lane, process: Process, base: int, first: int, steps: Counter[str]
) -> list[dict]:
    """The annotations of a lane, on tracks from `first` on; `steps` counts its iterations."""
    pid = process.about.get("pid", 0)
    events: list[dict] = []
    tracks = {kind: (pid, first + place) for place, kind in enumerate(KINDS)}
    for kind, name, start, end in sorted(_spans(lane, process), key=lambda span: span[2]):
        if kind == "iteration":
            # One that was open at the begin of a further part goes on there.
            steps[lane.name] += start >= process.start or not steps[lane.name]
            name = f"ProfilerStep#{steps[lane.name] - 1}"
        events.append(_event(name, start, end, base, tracks[kind]))
    for kind in {kind for kind, *_ in _spans(lane, process)}:
        events += _title(f"{kind}s of {lane.name}", tracks[kind], -10 + KINDS.index(kind))
    return events


def _joined(work: Sequence[Work]) -> Iterator[tuple[str, int, int]]:
    """The work of a stream, joined to operations: name, start, end."""
    name, start, end = "", 0, 0
    for one in work:
        if one.key.operation != name:
            if name:
                yield name, start, end
            name, start = one.key.operation, one.start
        end = max(one.end, start)
    if name:
        yield name, start, end


def _stream_events(process: Process, base: int, first: int) -> list[dict]:
    streams: dict[tuple[int, int], list[Work]] = {}
    for work in process.work:
        streams.setdefault((work.device, work.stream), []).append(work)
    events: list[dict] = []
    for place, ((device, stream), works) in enumerate(sorted(streams.items())):
        track = (process.about.get("pid", 0), first + place)
        events += _title(f"operations on GPU {device}, stream {stream}", track, 100 + place)
        events += [_event(*span, base, track) for span in _joined(works)]
    return events


def _read(part: Part) -> dict[str, Any]:
    """Kineto's trace of a part; an empty one where there is none.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    path = activities_path(part.folder, part.name, part.number)
    if not path.exists():
        return {"schemaVersion": 1, "traceEvents": [], "baseTimeNanoseconds": 0}
    return read_trace(path)


def trace_of(parts: Sequence[Part]) -> dict[str, Any]:
    """The trace of a process.

    Args:
        parts: of its recording.

    Raises:
        OSError, ValueError: Kineto's part cannot be read.
    """
    trace: dict[str, Any] = {}
    events: list[Any] = []
    titles: dict[str, dict] = {}
    tracks: dict[str, int] = defaultdict(lambda: _FIRST_TRACK + len(KINDS) * len(tracks))
    steps: Counter[str] = Counter()
    for part in parts:
        of_part, process = _read(part), part.read()
        lanes = assemble(process)
        begun = int(of_part.get("baseTimeNanoseconds", 0))
        trace = trace or of_part
        base = int(trace.get("baseTimeNanoseconds", 0))
        for event in of_part["traceEvents"]:
            if begun != base and isinstance(event, dict) and "ts" in event:
                event["ts"] += (begun - base) / 1e3
            events.append(event)
        own = [e for lane in lanes
               for e in _lane_events(lane, process, base, tracks[lane.name], steps)]  # fmt: skip
        for event in own + _stream_events(process, base, _FIRST_STREAM):
            if event["ph"] == "M":
                titles[json.dumps(event)] = event
            else:
                events.append(event)
    trace["traceEvents"] = events + list(titles.values())
    about = {key: parts[0].about.get(key, 0) for key in ("rank", "world_size")}
    trace.setdefault("distributedInfo", {"backend": "none", **about})
    return trace


def write_traces(processes: Sequence[Sequence[Part]], path: Path) -> list[Path]:
    """Writes the trace of each process; with several, each file's name has the process's.

    Args:
        processes: the parts of each process's recording.
        path: the file.

    Returns:
        The files.

    Raises:
        ValueError: a file cannot be written, or Kineto's part cannot be read.
    """
    written = []
    several = len(processes) > 1
    for parts in processes:
        head, dot, tail = path.name.partition(".")
        target = path.with_name(f"{head}-{parts[0].called}{dot}{tail}") if several else path
        content = json.dumps(trace_of(parts)).encode()
        try:
            with replacing(target) as file:
                file.write(gzip.compress(content) if target.suffix == ".gz" else content)
        except OSError as problem:
            raise InvalidValue(
                f"expected --perfetto to name a file that can be written, got {target}: "
                f"{problem.strerror}"
            ) from problem
        written.append(target)
    return written
