"""Where the time of a training goes: by operation, on CPU and GPU, across the software stack.

    from cule import scope

    with scope.phase("training"), scope.operation("learning"):
        ...
    with scope.record("runs/scope", iterations=20) as recording:
        train()
    recording.breakdown()

After RL-Scope (Gleeson et al., 2021). Annotations cost less than a microsecond while nobody
records. docs/profiling.md explains it by an example, design/scope.md says how it works.
"""

from cule.scope.annotations import iteration, operation, phase
from cule.scope.breakdown import GpuTime, Row, Transitions
from cule.scope.capture import mark_graphs, watch_captures
from cule.scope.costs import Costs
from cule.scope.events import UNATTRIBUTED
from cule.scope.follower import follow_forks
from cule.scope.light import Light
from cule.scope.recording import Recording, record

__all__ = [
    "UNATTRIBUTED", "Costs", "GpuTime", "Light", "Recording", "Row", "Transitions",
    "iteration", "mark_graphs", "operation", "phase", "record",
]  # fmt: skip

watch_captures()
follow_forks()
