"""The description of a recorded process: the content of its file NAME.process.json."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from cule.disk.forms import formed
from cule.errors import InvalidValue
from cule.scope.events import Node, check_time

VERSION = 1


class _Gpu(TypedDict):
    index: int
    uuid: str
    name: str


class _Node(TypedDict):
    kind: str
    operation: str | None
    grid: list[int]
    bytes: int
    after: list[int]
    is_marker: bool
    name: str


class _MeanTimes(TypedDict):
    iterations: int
    iteration: float
    operations: dict[str, float]


class _Reference(_MeanTimes, total=False):
    times: list[float]


class _Needed(TypedDict):
    version: int
    state: str
    name: str
    main: int


class About(_Needed, total=False):
    """Times are nanoseconds since the Unix epoch. Earlier versions wrote fewer of the others."""

    pid: int
    parent: int
    rank: int
    world_size: int
    host: str
    root: str | None
    title: str | None
    thread_before_fork: int | None
    children: dict[str, str]
    command: str | None
    torch: str
    cuda: str | None
    instruments: list[str]
    window: list[int] | None
    parts: list[list[int]]
    asked: int | None
    gpus: list[_Gpu]
    iterations: list[int] | None
    first_iteration: int | None
    utilization: list[tuple[str, float, float]]
    reference: _Reference | None
    graphs: dict[str, list[_Node]]
    problems: list[str]


def parse_about(content: bytes) -> dict[str, Any]:
    """Checks the content of a process's file, and returns it.

    Raises:
        LookupError, RecursionError, TypeError, ValueError: it is damaged, or of another version.
    """
    about = json.loads(content)
    if about["version"] != VERSION:
        raise InvalidValue(f"it has version {about['version']}, this cule reads {VERSION}")
    samples = about.get("utilization", [])
    about["utilization"] = [tuple(sample) for sample in samples]
    values: dict[str, Any] = dict(formed(about, About))
    if values.get("window") is not None:
        start, end = (check_time(time) for time in values["window"])
        if start >= end:
            raise InvalidValue("its window ends before it begins")
    times = [check_time(time) for part in values.get("parts", ()) for time in part[:2]]
    if times != sorted(set(times)) or any(len(part) != 3 for part in values.get("parts", ())):
        raise InvalidValue("its parts do not follow each other")
    return values


def graphs_of(about: dict[str, Any]) -> dict[int, list[Node]]:
    """The nodes of the captured graphs, by the number of the graph.

    Raises:
        ValueError: a node waits for one that is not before it.
    """
    graphs = {}
    for number, nodes in about.get("graphs", {}).items():
        for place, node in enumerate(nodes):
            if not all(0 <= before < len(nodes) and before != place for before in node["after"]):
                raise InvalidValue(f"a node of graph {number} waits for one that is not there")
        graphs[int(number)] = [
            Node(**{**node, "grid": tuple(node["grid"]), "after": tuple(node["after"])})
            for node in nodes
        ]
    return graphs
