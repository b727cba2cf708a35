"""The mean gradient of several processes, by the way that suits their layout.

Layout-aware gradient reduction of GMI-DRL (Wang et al., 2022, section 4.1 and algorithm 1). NCCL
connects GPUs, and refuses two processes of one. So there are three ways:

- multi-process: all through the host's memory, by gloo: the paper's choice for one GPU, and its
  baseline. Here CUDA's inter-process communication does that without the host (hierarchical): a
  gradient of 1.7 million numbers of two processes took 6 ms through it, longer than all else of
  an update.
- multi-ring: the j-th processes of all GPUs are a ring. All rings add up; then one process of each
  ring, each on another GPU, add up the rings' sums, and spread the result in their rings. With one
  process on each GPU it is a plain all-reduce.
- hierarchical: the processes of a GPU add up in its memory; one of each GPU adds up these sums over
  GPUs; the result goes back through the GPU's memory.

All processes get the same bits: each number is added up in one place, and copied from there. On a
CPU gloo stands in for NCCL and for a GPU's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.multiprocessing.reductions import reduce_tensor

from cule.errors import InvalidValue
from cule.train.distributed.process_group import ProcessGroup, timeout_now
from cule.train.layout import Strategy

Mapping = Sequence[Sequence[int]]


def choose(mapping: Mapping) -> Strategy:
    """The paper's algorithm 1.

    Args:
        mapping: of each GPU, the processes that learn there.
    """
    if len(mapping) <= 1:
        return "multi-process"
    each = {len(processes) for processes in mapping}
    if len(each) > 1 or each.pop() > len(mapping):
        return "hierarchical"
    return "multi-ring"


class Reduction(Protocol):
    """Averages gradients.

    Attributes:
        captured: whether a CUDA graph may hold it.
    """

    captured: bool

    def average(self, gradient: torch.Tensor) -> None:
        """Replaces a vector by its mean over all processes that learn; all of them call it."""


def make_reduction(
    mapping: Mapping, gradient: torch.Tensor, strategy: Strategy
) -> Reduction | None:
    """The reduction of a layout. All processes have to call it.

    Args:
        mapping: of each GPU, the processes that learn there.
        gradient: this process's vector, which stays where it is.
        strategy: the way.

    Returns:
        None if one process learns, or if this one does not.
    """
    every = [rank for processes in mapping for rank in processes]
    if len(every) == 1:
        return None
    kinds: dict[Strategy, Callable[..., Reduction]]
    kinds = {"multi-process": MultiProcess, "multi-ring": MultiRing, "hierarchical": Hierarchical}
    reduction = kinds[strategy](mapping, gradient)
    return reduction if dist.get_rank() in every else None


def strategy_of(processes: ProcessGroup, wanted: Strategy | None) -> Strategy | None:
    """How processes average gradients; None: one process learns.

    Args:
        processes: the processes.
        wanted: what is asked for; None: what suits the layout.

    Raises:
        ValueError: the layout has no such way.
    """
    mapping = processes.layout.learners_by_device(processes.size)
    each = [len(learners) for learners in mapping]
    if sum(each) == 1:
        if wanted is not None:
            raise InvalidValue(f"expected no reduction where one process learns, got {wanted}")
        return None
    if wanted == "multi-ring" and (len({*each}) > 1 or each[0] > len(each)):
        raise InvalidValue(
            "expected reduction multi-ring with equally many processes that learn on each GPU, and "
            f"at most as many as there are GPUs, got {', '.join(map(str, each))}"
        )
    if processes.divided and len(mapping) > 1:
        if wanted not in (None, "multi-process"):
            raise InvalidValue(
                "expected reduction multi-process between MIG slices, which NCCL does not connect, "
                f"got {wanted}"
            )
        return "multi-process"
    one_gpu = len(mapping) == 1 and processes.device.type == "cuda"
    return wanted or ("hierarchical" if one_gpu else choose(mapping))


def reduction_of(
    processes: ProcessGroup, gradient: torch.Tensor, wanted: Strategy | None = None
) -> Reduction | None:
    """The reduction of processes that learn, which all call it; None: one process learns.

    Args:
        processes: the processes.
        gradient: this process's vector, of zeros.
        wanted: as of `strategy_of`.

    Raises:
        ValueError: the layout has no such way.
    """
    strategy = strategy_of(processes, wanted)
    if strategy is None:
        return None
    mapping = processes.layout.learners_by_device(processes.size)
    reduction = make_reduction(mapping, gradient, strategy)
    if reduction is not None:
        # NCCL connects GPUs when they first add up, which would be after the start.
        reduction.average(gradient)
    return reduction


def _own_group(groups: Mapping, backend: str | None = None) -> Any:
    """The process group that this process is in; None: it is in none. All have to call it.

    Its messages may take as long as those of all processes.
    """
    own, _ = dist.new_subgroups_by_enumeration(
        [list(ranks) for ranks in groups], backend=backend, timeout=timeout_now()
    )
    return own


class MultiProcess:
    """Through the host's memory; see the head of this module."""

    captured = False

    def __init__(self, mapping: Mapping, gradient: torch.Tensor):
        every = [rank for processes in mapping for rank in processes]
        self.count = len(every)
        self.group = _own_group([every], "gloo")
        on_gpu = gradient.device.type == "cuda"
        self.host = torch.empty_like(gradient, device="cpu", pin_memory=True) if on_gpu else None

    def average(self, gradient: torch.Tensor) -> None:
        """See Reduction; waits for the device."""
        host = gradient if self.host is None else self.host.copy_(gradient)
        dist.all_reduce(host, group=self.group)
        host /= self.count
        if self.host is not None:
            gradient.copy_(host, non_blocking=True)


class MultiRing:
    """Rings over GPUs, and one that connects them; see the head of this module."""

    captured = True

    def __init__(self, mapping: Mapping, gradient: torch.Tensor):
        each = len(mapping[0])
        self.count = each * len(mapping)
        rings = [[processes[j] for processes in mapping] for j in range(each)]
        bridge = [mapping[j][j] for j in range(each)]
        self.ring = _own_group(rings)
        self.bridge = _own_group([bridge]) if each > 1 else None
        self.root = next((b for b, ring in zip(bridge, rings, strict=True)
                          if each > 1 and dist.get_rank() in ring), None)  # fmt: skip

    def average(self, gradient: torch.Tensor) -> None:
        """See Reduction."""
        dist.all_reduce(gradient, group=self.ring)
        if self.bridge is not None:
            dist.all_reduce(gradient, group=self.bridge)
        if self.root is not None:
            dist.broadcast(gradient, src=self.root, group=self.ring)
        gradient /= self.count


class Hierarchical:
    """Inside each GPU, then over GPUs; see the head of this module."""

    captured = False

    def __init__(self, mapping: Mapping, gradient: torch.Tensor):
        self.count = sum(len(processes) for processes in mapping)
        rank = dist.get_rank()
        near = _own_group(mapping, "gloo")
        leaders = [processes[0] for processes in mapping]
        self.leads = rank in leaders
        # A single leader has nobody to ask.
        self.leaders = _own_group([leaders]) if len(leaders) > 1 else None
        self.near: _Near | None = None
        ranks = next((processes for processes in mapping if rank in processes), None)
        if ranks is not None and len(ranks) > 1:
            kind = _InMemory if gradient.device.type == "cuda" else _ByGloo
            self.near = kind(ranks, near, gradient)

    def average(self, gradient: torch.Tensor) -> None:
        """See Reduction."""
        if self.near is not None:
            self.near.add_up(gradient)
        if self.leaders is not None:
            dist.all_reduce(gradient, group=self.leaders)
        if self.leads:
            gradient /= self.count
        if self.near is not None:
            self.near.spread(gradient)


class _Near(Protocol):
    """Processes of one GPU, of which the first is the leader."""

    def add_up(self, gradient: torch.Tensor) -> None:
        """Makes the leader's vector the sum of all."""

    def spread(self, gradient: torch.Tensor) -> None:
        """Makes the others' vectors the leader's."""


class _ByGloo:
    """Processes whose vectors are in the host's memory."""

    def __init__(self, ranks: Sequence[int], group: Any, gradient: torch.Tensor):
        self.leader, self.group = ranks[0], group

    def add_up(self, gradient: torch.Tensor) -> None:
        """See _Near; the others' vectors are undefined after it."""
        dist.reduce(gradient, dst=self.leader, group=self.group)

    def spread(self, gradient: torch.Tensor) -> None:
        """See _Near."""
        dist.broadcast(gradient, src=self.leader, group=self.group)


class _InMemory:
    """Processes of a GPU that read each other's vectors, by CUDA's inter-process communication.

    The host never waits for the GPU. An event, which the GPU's streams wait for, says that a vector
    is ready; a barrier of the hosts says that the event was recorded. The leader's result has
    memory of its own: it is overwritten only after all have recorded their next gradient, and so
    have read this one.
    """

    def __init__(self, ranks: Sequence[int], group: Any, gradient: torch.Tensor):
        self.group = group
        self.result = torch.empty_like(gradient)
        self.ready = torch.cuda.Event(interprocess=True)
        mine = reduce_tensor(gradient), reduce_tensor(self.result), self.ready.ipc_handle()
        handles: list[Any] = [None] * len(ranks)
        dist.all_gather_object(handles, mine, group=group)
        self.leads = dist.get_rank() == ranks[0]
        self.others: list[tuple[torch.Tensor, Any]] = []
        # The leader reads the others' gradients, and they read the leader's result.
        for vector, result, handle in handles[1:] if self.leads else handles[:1]:
            rebuild, values = vector if self.leads else result
            event = torch.cuda.Event.from_ipc_handle(gradient.device, handle)
            self.others.append((rebuild(*values), event))

    def _announce(self) -> None:
        """Says that this process's vector is ready, and waits until all hosts have said so."""
        self.ready.record()
        dist.barrier(group=self.group)

    def add_up(self, gradient: torch.Tensor) -> None:
        """See _Near."""
        self._announce()
        if self.leads:
            for vector, event in self.others:
                torch.cuda.current_stream().wait_event(event)
                gradient += vector

    def spread(self, gradient: torch.Tensor) -> None:
        """See _Near."""
        if self.leads:
            self.result.copy_(gradient)
        self._announce()
        if not self.leads:
            [(result, event)] = self.others
            torch.cuda.current_stream().wait_event(event)
            gradient.copy_(result)
