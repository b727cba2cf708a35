"""The costs of a recording's book-keeping, as `calibrate` measures them (calibration.py)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cule.disk.files import content_of, replacing
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.scope.events import BACKWARD, REPLAY, Call


@dataclass
class Costs:
    """The cost of each piece of book-keeping, in nanoseconds.

    Attributes:
        annotation: a begin and an end of an annotation.
        boundary: a call through a boundary.
        operator: an event of an operator of torch.
        api: an event of a CUDA call that is not in `apis`.
        apis: an event of a CUDA call, by the call's name.
        graph_node: for each node of a graph, in the call that launches the graph.
        graph_node_gpu: for each node of a graph, on the GPU.
        about: machine, versions and settings of the measurement.
    """

    annotation: float = 0.0
    boundary: float = 0.0
    operator: float = 0.0
    api: float = 0.0
    apis: dict[str, float] = field(default_factory=dict)
    graph_node: float = 0.0
    graph_node_gpu: float = 0.0
    about: dict[str, Any] = field(default_factory=dict)

    def around(self, call: Call) -> float:
        """The cost of a call outside of its own time: half before, half after it."""
        if call.level in ("simulator", "waiting") or call.name in (BACKWARD, REPLAY):
            return self.boundary
        return self.operator if call.level == "backend" else 0.0

    def inside(self, call: Call, nodes: int) -> float:
        """The cost inside a call, which grows with the nodes of the graph that it launches."""
        if call.level != "cuda_api":
            return 0.0
        return self.apis.get(call.name, self.api) + nodes * self.graph_node

    def write(self, path: Path) -> None:
        """Writes them to a file.

        Raises:
            ValueError: it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(json.dumps(dataclasses.asdict(self), indent=1).encode())
        except OSError as problem:
            raise InvalidValue(
                f"expected a file for the calibration that can be written, got {path}: "
                f"{problem.strerror}"
            ) from problem

    @classmethod
    def read(cls, path: str | Path) -> Costs:
        """Reads them from a file that `calibrate` wrote.

        Raises:
            ValueError: it cannot be read, or has none.
        """
        try:
            values = json.loads(content_of(Path(path)))
            costs = cls(**values)
            numbers = [getattr(costs, one.name) for one in dataclasses.fields(cls)[:4]]
            numbers += [costs.graph_node, costs.graph_node_gpu, *costs.apis.values()]
            if not all(float(number) >= 0 for number in numbers):
                raise InvalidValue("a cost is negative")
        except (OSError, *DAMAGE) as problem:
            raise InvalidValue(
                f"expected a file of 'cule.scope calibrate', got {path}: {problem}"
            ) from problem
        return costs
