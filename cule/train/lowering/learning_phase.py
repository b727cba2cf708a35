"""The operations of a phase of learning: evaluate, prepare, choose transitions, update.

The updates themselves are in updates.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.algorithm import Nets
from cule.train.batch import Batch, turns_of
from cule.train.checks import described
from cule.train.lowering.evaluation import Evaluation
from cule.train.lowering.learner import Learner
from cule.train.lowering.loops import Loops, loops_of
from cule.train.lowering.method_checks import check_parts, check_tensors
from cule.train.lowering.networks import NotedNets, UsedNets
from cule.train.lowering.parts import Parts
from cule.train.lowering.peak_bytes import PeakBytes
from cule.train.lowering.replay import Sampling, declare_sampling
from cule.train.lowering.sandbox import alike
from cule.train.lowering.updates import Samples, declare_updates, weights_at
from cule.train.plan.program import Access, Recurrent
from cule.train.plan.stores import Window
from cule.train.plan.work import Work

# With more observations at once, a CPU's caches no longer hold what a layer hands to the next.
CPU_AT_ONCE = 256


def windows_of(p: Parts, loops: Loops) -> dict[str, Access]:
    """The windows of all steps that a round learns from, by the names of a batch's parts."""
    replay = p.phase.learning.replay
    first, stop, since = loops.first, loops.stop, None if replay is None else 0
    own = [name for name in p.algorithm.keeps if name != "actions"]
    names = ["actions", *own, "rewards", "discounts", "played"]
    reads = {"observations": p.declaration.observation[first : stop + 1]}
    reads |= {name: p.declaration.stored[name][first:stop] for name in names}
    reads |= p.memories.windows(first, stop)
    reads = {name: replace(access, since=since) for name, access in reads.items()}
    for name, make in p.phase.reads.items():
        reads[name] = make(stop)
        if not isinstance(reads[name], Access):
            raise InvalidValue(
                f"expected what learning reads as {name} to be a window of a recurrent, got "
                f"{described(reads[name])}"
            )
        if replay is not None:
            if reads[name].length() not in (loops.steps, loops.steps + 1):
                raise InvalidValue(
                    f"expected what learning reads as {name} to be a window of all {loops.steps} "
                    f"steps of the replay memory, Replay.steps(num_envs), or of one more, got "
                    f"{reads[name]}"
                )
            reads[name] = replace(reads[name], since=since)
    return reads


def declare_phase(p: Parts) -> Learner:
    """Appends all operations of a phase of learning; returns the learner."""
    learning, learners = p.phase.learning, list[Learner]()
    steps = learning.replay.steps(p.num_envs) if learning.replay else learning.steps
    loops = loops_of(learning, p.program, p.start, p.updates, steps)
    windows = windows_of(p, loops)
    whole: dict[str, Recurrent] = {}
    if p.evaluates:
        evaluation = Evaluation(p, lambda each: _evaluated_at_once(p, learners[0], each))
        whole = evaluation.declare(loops)
    if p.prepare is not None:
        whole = _declare_preparation(p, windows, loops, whole)
    chosen: Sampling | None = None
    if learning.minibatch and not learning.replay:
        chosen = Sampling(_declare_shuffle(p, loops))
    if unknown := [name for name in learning.normalize if name not in whole]:
        raise InvalidValue(
            f"expected normalize of Learning to name what prepare or evaluate returns "
            f"({', '.join(whole) or 'nothing'}), got {', '.join(unknown)}"
        )
    if learning.replay is not None:
        chosen = declare_sampling(p, loops.gradient.when, loops.stop, loops.steps)
    learners.append(declare_updates(p, loops, Samples(windows, loops.steps, whole, chosen)))
    return learners[0]


def _evaluated_at_once(p: Parts, learner: Learner, each: int) -> int:
    """The most observations that are evaluated at once, of so many bytes each.

    There is always room for those of a step. Those of several steps have the memory of a gradient,
    which comes at another time.
    """
    most, work = p.algorithm.args.learner_chunk, learner.work
    if p.device.type == "cpu":
        most = min(most, CPU_AT_ONCE)
    if p.algorithm.args.memory_budget is None:
        return most
    return min(most, work.bytes // max(1, each))


def _declare_preparation(
    p: Parts, windows: Mapping[str, Access], loops: Loops, evaluated: dict[str, Recurrent]
) -> dict[str, Recurrent]:
    """Appends `prepare`, which is called once in a round; it reads what a first call has read."""
    program, n, loop, count = p.program, p.num_envs, loops.round, loops.steps + 1
    last = (loop.round + 1) * count
    reads = {**windows, **{name: all_[last - count : last] for name, all_ in evaluated.items()}}
    probe = _probe_preparation(p, reads)
    reads = {name: access for name, access in reads.items() if name in probe.parts}
    networks = [name for name in p.learned_names if name in probe.networks]
    weights = weights_at(p, loop.update)

    def function(*read: Any) -> tuple[torch.Tensor, ...]:
        windows_by_name = dict(zip(reads, read, strict=False))
        nets = UsedNets(**dict(zip(networks, read[len(reads) :], strict=True)))
        values = prepared(p, windows_by_name, nets, set())
        check_tensors("prepare", values, probe.results)
        return tuple(values[name] for name in probe.results)

    assert p.prepare is not None
    written = {
        name: program.recurrent(
            p.named(name), (loops.steps, n, *each), torch.float32, over="update"
        )
        for name, each in probe.results.items()
    }
    program.operation(
        p.named("prepare"), function, role="learn", **loop.when, work=probe.work,
        reads=[*reads.values(), *(weights[name] for name in networks)],
        writes=[
            replace(one[loop.round], same=Prepared(p.prepare, name) if probe.pure else None)
            for name, one in written.items()
        ],
    )  # fmt: skip
    return written


@torch.no_grad()
def prepared(
    p: Parts, windows: Mapping[str, Window], nets: Nets, asked: set[str]
) -> Mapping[str, torch.Tensor]:
    """Calls `prepare` and checks its result; adds the names of the parts that it reads to `asked`.

    Args:
        p: the parts of the program.
        windows: the windows of the batch's parts, by name.
        nets: the networks that it gets.
        asked: gets the names.
    """
    parts: dict[str, Callable[[], torch.Tensor]] = {
        name: lambda window=window: window.all()  # type: ignore[misc]
        for name, window in windows.items()
    }
    batch = Batch(parts)
    with p.autocast, p.memories.steps(nets, batch, p.phase.learning):
        assert p.prepare is not None
        values = p.prepare(nets, batch)
        check_tensors("prepare", values)
        check_parts(p.algorithm, p.phase.reads, values)
    asked |= batch.asked
    return values


@dataclass(frozen=True)
class Prepared:
    """The key (Access.same) of a result of a `prepare` that depends on what it reads alone."""

    function: Callable[..., Any]
    result: str


@dataclass(frozen=True)
class Preparation:
    """What a first call of `prepare`, with zeros, has shown.

    Attributes:
        parts, networks: the names of the parts of the batch and of the networks that it uses.
        results: the shape of a number of its results by their names: (), or (num_players,).
        work: the memory that it needs.
        pure: it draws no random numbers and changes neither attributes of the algorithm nor buffers
            of networks.
    """

    parts: set[str]
    networks: set[str]
    results: dict[str, tuple[int, ...]]
    work: Work
    pure: bool


def _probe_preparation(p: Parts, reads: Mapping[str, Access]) -> Preparation:
    """Calls `prepare` with zeros.

    Raises:
        ValueError: it does not return numbers for each step of each env, or of each player.
    """
    asked, peak, before = set[str](), PeakBytes(), p.sandbox.state()
    windows = {name: p.blank(access) for name, access in reads.items()}
    nets = NotedNets(**dict(zip(p.learned_names, p.learned, strict=True)))
    with peak:
        result = prepared(p, windows, nets, asked)
    shape = p.phase.learning.window, p.num_envs
    players = p.declaration.num_players
    for name, value in result.items():
        if tuple(value.shape) not in (shape, (*shape, players) if players > 1 else shape):
            raise InvalidValue(
                f"expected prepare to return {name} of shape {shape}, one for each step of each "
                f"env, got {tuple(value.shape)}"
            )
    pure = alike(p.sandbox.state(), before)
    results = {name: tuple(value.shape[2:]) for name, value in result.items()}
    return Preparation(asked, nets.noted, results, peak.work_of(p.num_envs), pure)


def _declare_shuffle(p: Parts, loops: Loops) -> Access:
    """Appends a permutation of all transitions for each epoch; returns an update's read of it."""
    program, learning = p.program, p.phase.learning
    count, device = p.num_envs, p.device
    if not p.memories.states:
        count *= learning.steps
    shuffled = program.recurrent(p.named("shuffled"), (count,), torch.int64, over="update")

    def function() -> torch.Tensor:
        return torch.randperm(count, device=device)

    program.operation(
        p.named("shuffle"), function, role="learn", **loops.round.when, times=learning.epochs,
        writes=[shuffled[program.u]],
    )  # fmt: skip
    return shuffled[program.u // turns_of(learning, p.updates)]
