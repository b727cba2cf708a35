"""The operations of a phase of learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.batch import Batch, Rows, rows_of, sample
from cule.train.learning import Learning
from cule.train.lowering.learner import Learner, by_name, copy_weights
from cule.train.lowering.returned import check_dtypes, check_parts, check_tensors, described
from cule.train.plan.index import Index
from cule.train.plan.program import Access, Program, Recurrent, Work
from cule.train.plan.stores import Window

if TYPE_CHECKING:
    from cule.train.lowering.declaration import Declaration


@dataclass
class Phase:
    """What is done in a phase.

    Attributes:
        learning: when, and from what.
        prepare: what is done once; None: nothing.
        reads: further windows by name, each from the index after the last step.
    """

    learning: Learning
    prepare: Callable[..., Any] | None
    reads: Mapping[str, Callable[[Index], Access]]


@dataclass
class Windows:
    """The windows that a phase reads, by name.

    Attributes:
        reads: by name, the observations first.
        stop: the index after the last step that is learned from.
        steps: how many steps.
    """

    reads: dict[str, Access]
    stop: Index
    steps: int


def windows_of(d: Declaration, phase: Phase) -> Windows:
    """The windows of all steps that are learned from."""
    learning, t = phase.learning, d.t
    stop = t if learning.lag else t + 1
    steps, since = learning.steps, None
    if learning.replay is not None:
        # The three oldest steps are only read for the stacks of later ones.
        steps, since = learning.replay.memory // d.collector.num_envs - 3, 0
    first = stop - steps
    own = [name for name in d.algorithm.keeps if name != "actions"]
    names = ["actions", *own, "rewards", "discounts", "played"]
    reads = {"observations": d.observation[first : stop + 1]}
    reads |= {name: d.kept[name][first:stop] for name in names}
    reads = {name: replace(access, since=since) for name, access in reads.items()}
    for name, make in phase.reads.items():
        reads[name] = make(stop)
        if not isinstance(reads[name], Access):
            raise InvalidValue(
                f"expected what learning reads as {name} to be a window of a recurrent, got "
                f"{described(reads[name])}"
            )
    return Windows(reads, stop, steps)


@dataclass
class Loops:
    """When the parts of a phase are called."""

    phase: dict[str, Any]
    updates: dict[str, Any]


def declare_phase(d: Declaration, phase: Phase) -> None:
    """Appends all operations of a phase of learning."""
    p, learning = d.program, phase.learning
    loops = Loops({"every": p.period, "start": d.start}, {})
    loops.updates = loops.phase | {"times": d.updates}
    windows = windows_of(d, phase)
    whole = _declare_evaluation(d, windows, loops, learning)
    if phase.prepare is not None:
        whole = _declare_preparation(d, phase, windows, loops, whole)
    chosen = (
        _declare_shuffle(d, learning, loops) if learning.minibatch and not learning.replay else None
    )
    if unknown := [name for name in learning.normalize if name not in whole]:
        raise InvalidValue(
            f"expected normalize of Learning to name what prepare or evaluate returns "
            f"({', '.join(whole) or 'nothing'}), got {', '.join(unknown)}"
        )
    if learning.replay is not None:
        chosen = _declare_sampling(d, learning, loops, windows)
    _declare_gradient(d, phase, windows, loops, whole, chosen)
    _declare_update(d, loops)
    _declare_copies(d, loops)


def _weights(d: Declaration, version: Index) -> list[Access]:
    """All networks at the update of this number."""
    reads = [net[version] for net in d.trained.values()]
    for name, net in d.copied.items():
        reads.append(net[version // d.nets.copies[name][1].every])
    return reads


def _net_names(d: Declaration) -> list[str]:
    return [*d.trained, *d.copied]


def _declare_evaluation(
    d: Declaration, windows: Windows, loops: Loops, learning: Learning
) -> dict[str, Recurrent]:
    """Values of all observations of the window: steps + 1 calls, or fewer if acting had them."""
    if not d.algorithm.evaluates:
        return {}
    p, count = d.program, windows.steps + 1
    _try_evaluation(d)
    stop, names = windows.stop, list(d.trained)
    made = {}
    for name, dtype in d.algorithm.evaluates.items():
        values = p.recurrent(name, (d.collector.num_envs,), dtype, over="update")

        @torch.no_grad()
        def function(observations: torch.Tensor, *objects: nn.Module, name: str = name) -> Any:
            with d.learner.autocast:
                return d.algorithm.evaluate(by_name(names, objects), observations)[name]

        at = stop - windows.steps + p.j
        versions = d.updates * (p.u // count)
        p.operation(
            f"evaluate {name}", function, role="learn", **loops.phase, times=count,
            reads=[d.observation[at], *(net[versions] for net in d.trained.values())],
            writes=[replace(values[p.u], same=name)],
        )  # fmt: skip
        made[name] = values
    return made


@torch.no_grad()
def _try_evaluation(d: Declaration) -> None:
    """Checks what `evaluate` returns for zeros."""
    nets = by_name(list(d.trained), list(d.nets.trained.values()))
    with d.learner.autocast:
        values = d.algorithm.evaluate(nets, blank(d, d.observation[d.t]).all()[0])
    check_tensors("evaluate", values, d.algorithm.evaluates)
    for name in d.algorithm.evaluates:
        if tuple(values[name].shape) != (d.collector.num_envs,):
            raise InvalidValue(
                f"expected evaluate to return {name} with a number for each of "
                f"{d.collector.num_envs} envs, got {tuple(values[name].shape)}"
            )
    check_dtypes("evaluate", values, d.algorithm.evaluates)


def _declare_preparation(
    d: Declaration,
    phase: Phase,
    windows: Windows,
    loops: Loops,
    evaluated: dict[str, Recurrent],
) -> dict[str, Recurrent]:
    """What `prepare` makes once in a phase, from what it was seen to read."""
    p, n, count = d.program, d.collector.num_envs, windows.steps + 1
    last = (p.u + 1) * count
    reads = windows.reads | {
        name: values[last - count : last] for name, values in evaluated.items()
    }
    asked, names = _try_preparation(d, phase, reads)
    reads = {name: access for name, access in reads.items() if name in asked}

    def function(*read: Any) -> tuple[torch.Tensor, ...]:
        found = dict(zip(reads, read, strict=False))
        values = prepared(d, phase, found, read[len(reads) :], set())
        check_tensors("prepare", values, names)
        return tuple(values[name] for name in names)

    made = {
        name: p.recurrent(name, (windows.steps, n), torch.float32, over="update") for name in names
    }
    p.operation(
        "prepare", function, role="learn", **loops.phase,
        reads=[*reads.values(), *_weights(d, d.updates * p.u)],
        writes=[values[p.u] for values in made.values()],
    )  # fmt: skip
    return made


@torch.no_grad()
def prepared(
    d: Declaration,
    phase: Phase,
    windows: Mapping[str, Window],
    objects: Sequence[Any],
    asked: set[str],
) -> Mapping[str, torch.Tensor]:
    """What `prepare` returns; adds the names of what it reads to `asked`."""
    assert phase.prepare is not None
    parts: dict[str, Callable[[], torch.Tensor]] = {
        name: lambda window=window: window.all()  # type: ignore[misc]
        for name, window in windows.items()
    }
    batch = Batch(parts)
    with d.learner.autocast:
        values = phase.prepare(by_name(_net_names(d), objects), batch)
        check_tensors("prepare", values)
        check_parts(d.algorithm, phase.reads, values)
    asked |= batch.asked
    return values


def _try_preparation(
    d: Declaration, phase: Phase, reads: Mapping[str, Access]
) -> tuple[set[str], list[str]]:
    """What `prepare` reads and what it returns, from a call with zeros."""
    asked: set[str] = set()
    windows = {name: blank(d, access) for name, access in reads.items()}
    objects = [*d.nets.trained.values(), *(net for net, _ in d.nets.copies.values())]
    result = prepared(d, phase, windows, objects, asked)
    assert phase.learning.replay is None, "check() refuses it"
    shape = phase.learning.steps, d.collector.num_envs
    for name, value in result.items():
        if tuple(value.shape) != shape:
            raise InvalidValue(
                f"expected prepare to return {name} of shape {shape}, one for each step of each "
                f"env, got {tuple(value.shape)}"
            )
    return asked, list(result)


class Blank(Window):
    """Zeros, as a window: for trying functions before there is a plan.

    Args:
        zeros: (length, num_envs, ...), of which a slot may be expanded.
    """

    def __init__(self, zeros: torch.Tensor):
        self.zeros = zeros
        self.slots = torch.zeros(len(zeros), dtype=torch.int64, device=zeros.device)

    def __len__(self) -> int:
        return len(self.zeros)

    def all(self) -> torch.Tensor:
        """As Window.all."""
        return self.zeros

    def of(self, envs: torch.Tensor) -> torch.Tensor:
        """As Window.of."""
        return self.zeros[:, envs]

    def at(self, places: torch.Tensor, envs: torch.Tensor) -> torch.Tensor:
        """As Window.at."""
        return self.zeros[places, envs]


def blank(d: Declaration, access: Access) -> Blank:
    """Zeros like a window."""
    recurrent = access.recurrent
    n, *rest = recurrent.shape
    stacked = [recurrent.stack, *rest] if recurrent.stack > 1 else rest
    one = torch.zeros((1, 1, *stacked), dtype=recurrent.dtype, device=d.collector.device)
    return Blank(one.expand(access.length() or 1, n, *stacked))


def _declare_shuffle(d: Declaration, learning: Learning, loops: Loops) -> Access:
    """A permutation of all transitions for each epoch; returns how an update reads its epoch's."""
    p, count = d.program, d.collector.num_envs * learning.steps
    device, per_epoch = d.collector.device, d.updates // learning.epochs
    shuffled = p.recurrent("shuffled", (count,), torch.int64, over="update")

    def function() -> torch.Tensor:
        return torch.randperm(count, device=device)

    p.operation(
        "shuffle", function, role="learn", **loops.phase, times=learning.epochs,
        writes=[shuffled[p.u]],
    )  # fmt: skip
    d.learner.turns = per_epoch
    return shuffled[p.u // per_epoch]


def _declare_sampling(d: Declaration, learning: Learning, loops: Loops, windows: Windows) -> Access:
    """Places of transitions in the memory for each update."""
    p, replay = d.program, learning.replay
    assert replay is not None
    chosen = p.recurrent("sampled", (2, replay.minibatch), torch.int64, over="update")
    memory = windows.steps + 3

    def function(position: torch.Tensor) -> torch.Tensor:
        return sample(memory, replay.minibatch, d.collector.num_envs, position)

    p.operation(
        "sample", function, role="learn", **loops.updates, moments=(windows.stop,),
        writes=[chosen[p.u]],
    )  # fmt: skip
    return chosen[p.u]


def _declare_gradient(
    d: Declaration,
    phase: Phase,
    windows: Windows,
    loops: Loops,
    whole: dict[str, Recurrent],
    chosen: Access | None,
) -> None:
    p, learning, learner = d.program, phase.learning, d.learner
    names, count = _net_names(d), windows.steps + 1
    if learning.minibatch is None and learning.replay is None:
        learner.turns = learning.groups
    round_ = p.u // d.updates
    if phase.prepare is not None:
        wholes = {name: values[round_] for name, values in whole.items()}
    else:
        wholes = {
            name: values[round_ * count : (round_ + 1) * count] for name, values in whole.items()
        }

    def rows(read: Mapping[str, Any], some: Any) -> Rows:
        parts = {
            name: value.all() if isinstance(value, Window) else value
            for name, value in read.items()
            if name in whole
        }
        found = {name: value for name, value in read.items() if name not in whole}
        return rows_of(learning, d.collector.num_envs, found, parts, learner.turn, some)

    learner.work = _work(d, phase, windows.reads, wholes, rows)
    used = {"observations", *learner.used}
    reads = {name: a for name, a in (windows.reads | wholes).items() if name in used}
    choice = [chosen] if chosen is not None else []

    def function(*read: Any) -> tuple[()]:
        found = dict(zip(reads, read, strict=False))
        rest = read[len(reads) :]
        made = rows(found, rest[0] if choice else None)
        learner.compute_gradient(by_name(names, rest[len(choice) : -1]), made)
        return ()

    step = 3 if learner.reduction else 2
    p.operation(
        "gradient", function, role="learn", **loops.updates, work=learner.work,
        reads=[*reads.values(), *choice, *_weights(d, p.u), d.state[step * p.u]],
        writes=[d.state[step * p.u + 1]],
    )  # fmt: skip


def _work(
    d: Declaration,
    phase: Phase,
    windows: Mapping[str, Access],
    whole: Mapping[str, Access],
    rows: Callable[[Mapping[str, Any], Any], Rows],
) -> Work:
    """Tries the loss on zeros; returns what its activations take."""
    device, n, learning = d.collector.device, d.collector.num_envs, phase.learning
    read: dict[str, Any] = {name: blank(d, access) for name, access in windows.items()}
    for name, access in whole.items():
        shape = access.recurrent.shape
        if access.window:
            shape = (access.length() or 1, *shape)
        read[name] = torch.zeros(shape, dtype=access.recurrent.dtype, device=device)
    some = None
    if learning.replay is not None:
        some = torch.zeros((2, learning.replay.minibatch), dtype=torch.int64, device=device)
    elif learning.minibatch is not None:
        some = torch.zeros(n * learning.steps, dtype=torch.int64, device=device)
    made = rows(read, some)
    objects = [*d.nets.trained.values(), *(net for net, _ in d.nets.copies.values())]
    each = d.learner.try_out(by_name(_net_names(d), objects), made)
    chunk, needed = d.algorithm.args.learner_chunk, made.count * made.observations_each
    if learning.whole and chunk < needed:
        raise InvalidValue(
            f"expected learner_chunk to be at least {needed}, the observations of an update, as "
            f"with Learning(whole=True) they are learned from at once, got {chunk}"
        )
    limit = max(1, chunk // made.observations_each)
    return Work(made.count, each, least=made.count if learning.whole else 1, limit=limit)


def _declare_update(d: Declaration, loops: Loops) -> None:
    """The mean over processes, and the optimizer's step."""
    p, learner, reduction = d.program, d.learner, d.learner.reduction
    step = 3 if reduction else 2
    if reduction:

        def reduce(learner: Learner) -> tuple[()]:
            reduction.average(learner.weights.gradient)
            return ()

        p.operation(
            "average gradient", reduce, role="reduce", captured=reduction.captured, **loops.updates,
            reads=[d.state[step * p.u + 1]], writes=[d.state[step * p.u + 2]],
        )  # fmt: skip

    def function(*_: Any) -> tuple[()]:
        learner.apply_gradient()
        return ()

    p.operation(
        "update", function, role="learn", **loops.updates,
        reads=[d.state[step * p.u + step - 1], *(net[p.u] for net in d.trained.values())],
        writes=[d.state[step * (p.u + 1)], *(net[p.u + 1] for net in d.trained.values())],
    )  # fmt: skip


def _declare_copies(d: Declaration, loops: Loops) -> None:
    """Copies of networks, such as a target network."""
    p: Program = d.program
    for name, made in d.copied.items():
        copy = d.nets.copies[name][1]
        number = (p.u + 1) // copy.every

        def function(source: nn.Module, target: nn.Module) -> tuple[()]:
            copy_weights(source, target)
            return ()

        p.operation(
            f"copy {copy.of} to {name}", function, role="copy", **loops.updates, nth=copy.every,
            reads=[d.trained[copy.of][p.u + 1], made[number - 1]], writes=[made[number]],
            copies=p.t * copy.every,
        )  # fmt: skip
