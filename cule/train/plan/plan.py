"""A plan: a program with an order, streams and memory, that can be explained and executed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from cule.train.plan.execution import in_order
from cule.train.plan.explain import explain
from cule.train.plan.graphs import CudaStreams, Launcher, NewStream
from cule.train.plan.groups import make_groups
from cule.train.plan.lifetimes import surely_before
from cule.train.plan.memory import plan_memory
from cule.train.plan.parts import make_executor
from cule.train.plan.passes import Passes, apply, unread
from cule.train.plan.polyhedra import Polyhedra, bounded, check
from cule.train.plan.program import Program, Recurrent
from cule.train.plan.storage import Storage
from cule.train.plan.timeline import Bar, measure, schedule


class Plan:
    """How a program is computed.

    Args:
        program: the program.
        device: where it is computed.
        passes: which passes are made; None: all.
        fixed: bytes on the device besides the rings, such as weights and envs.
        budget: bytes on the device that may be used; None: no limit.
        graphs: on a GPU, capture CUDA graphs.
        streams: on a GPU, the functions that make streams, see CudaStreams; None: usual streams.
        notes: further lines for explain().

    Attributes:
        program: the program after the passes.
        groups: the groups of an iteration, in their order.
        memory: the allocation of each Recurrent.
        notes: the passes' changes and the caller's notes, a line each.
        seconds: how long planning took.
        iteration: iterations executed so far.

    Raises:
        ValueError: the program reads what is never written, or not yet; or the budget is below the
            least that works.
    """

    def __init__(
        self,
        program: Program,
        device: torch.device | str = "cpu",
        *,
        passes: Passes | None = None,
        fixed: int = 0,
        budget: int | None = None,
        graphs: bool = True,
        streams: tuple[NewStream, NewStream] | None = None,
        notes: Sequence[str] = (),
    ):
        begun = time.perf_counter()
        self.device = torch.device(device)
        program = bounded(program)
        check(Polyhedra(program))
        self.passes = passes or Passes()
        self.program, changes = apply(program, self.passes)
        self.notes = [*changes, *notes]
        polyhedra = Polyhedra(self.program)
        beside, ahead = (
            self.device.type == "cuda" if one is None else one
            for one in (self.passes.beside, self.passes.ahead)
        )
        self.groups = make_groups(self.program, polyhedra, batch=self.passes.batch, beside=beside)
        sure = surely_before(polyhedra, self.groups)
        self.memory = plan_memory(
            self.program, polyhedra, self.groups, sure, fixed=fixed, budget=budget,
            unread=unread(self.program) if self.passes.prune else (),
            ahead=ahead,
        )  # fmt: skip
        self.seconds = time.perf_counter() - begun
        self.iteration = 0
        self.storage = Storage(self.memory.allocations, self.device)
        period = self.program.period
        self.executors = [make_executor(group, self.storage, period) for group in self.groups]
        self.launcher: Launcher | None = None
        if self.device.type == "cuda":
            sides = max(group.stream for group in self.groups)
            self.launcher = Launcher(
                self.executors, CudaStreams(self.device, sides, streams), capture=graphs
            )

    @property
    def steps(self) -> int:
        """Steps executed so far."""
        return self.iteration * self.program.period

    def begin(self, recurrent: Recurrent, value: Any) -> None:
        """Sets the value at index 0 of a Recurrent, such as the first observations."""
        if recurrent in self.memory.allocations:
            self.storage.begin(recurrent, value)

    def run(
        self,
        iterations: int = 1,
        progress: Callable[[int], object] = lambda steps: None,
        *,
        captured: bool = True,
    ) -> None:
        """Executes some iterations. Does not wait for a GPU.

        Args:
            iterations: how many iterations.
            progress: called with the steps so far while they are executed; on a GPU after an
                iteration is launched.
            captured: use CUDA graphs, if the plan has them.
        """
        for _ in range(iterations):
            if self.launcher is not None:
                self.launcher.run(self.iteration, captured=captured)
                progress(self.steps + self.program.period)
            else:
                in_order(self.executors, self.iteration, progress)
            self.iteration += 1

    def measure(self) -> list[Bar]:
        """Executes an iteration call by call, and says when each operation would run.

        Waits for a GPU. Without graphs, a GPU's times include those of launches.
        """
        on_gpu = self.device.type == "cuda"
        measured = measure(
            self.executors, self.iteration,
            (lambda: torch.cuda.synchronize(self.device)) if on_gpu else (lambda: None),
        )  # fmt: skip
        self.iteration += 1
        return schedule(measured)

    def warm_up(self) -> None:
        """Lets operations load and compile what their calls need; see Operation.warm_up."""
        for executor in self.executors:
            executor.warm_up()

    def explain(self) -> str:
        """The plan as text: each tensor's memory and readers, the order, the passes' changes."""
        return explain(self)

    def state_dict(self) -> dict[str, Any]:
        """The state that later iterations depend on, with that of the program's objects."""
        on_gpu = self.device.type == "cuda"
        return {
            "iteration": self.iteration,
            "recurrents": self.storage.state_dict(),
            "objects": {
                r.name: r.object.state_dict()
                for r in self.program.recurrents
                if hasattr(r.object, "state_dict")
            },
            "random": torch.get_rng_state(),
            "cuda_random": torch.cuda.get_rng_state(self.device) if on_gpu else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned.

        Raises:
            KeyError, RuntimeError, ValueError: the state is of another program.
        """
        self.iteration = state["iteration"]
        self.storage.load_state_dict(state["recurrents"])
        for recurrent in self.program.recurrents:
            if hasattr(recurrent.object, "state_dict"):
                recurrent.object.load_state_dict(state["objects"][recurrent.name])
        for executor in self.executors:
            executor.begin_at(self.steps)
        torch.set_rng_state(state["random"].cpu())
        if state["cuda_random"] is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_random"].cpu(), self.device)

    def free_graphs(self) -> None:
        """Frees the captured graphs; the next iterations capture them again."""
        if self.launcher is not None:
            self.launcher.free()
