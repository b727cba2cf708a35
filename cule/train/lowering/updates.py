"""The updates of a phase of learning: gradient, mean over processes, optimizer, copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.batch import Rows, rows_of, turns_of
from cule.train.lowering.learner import Learner
from cule.train.lowering.loops import Loops
from cule.train.lowering.loss_probe import LossProbe, probe_loss
from cule.train.lowering.networks import by_name
from cule.train.lowering.parts import Parts
from cule.train.lowering.replay import Sampling, declare_new_priorities
from cule.train.nn.weights import copy_weights, move_weights
from cule.train.plan.index import Index, constant
from cule.train.plan.program import Access, Recurrent
from cule.train.plan.stores import Window
from cule.train.plan.work import Work


@dataclass(frozen=True)
class Samples:
    """The steps that the updates of a phase learn from.

    Attributes:
        windows: the windows of all steps that are learned from, by name.
        steps: how many steps these are.
        whole: what `prepare`, or else `evaluate`, has computed for all of them, by name.
        sampling: the rows that were shuffled or sampled; None: groups of envs take turns.
    """

    windows: Mapping[str, Access]
    steps: int
    whole: Mapping[str, Recurrent]
    sampling: Sampling | None


def weights_at(p: Parts, version: Index) -> dict[str, Access]:
    """Reads of all networks that a loss gets, by name, in their version at an update."""
    reads = {name: net[p.version(name, version)] for name, net in p.trained.items()}
    for name, net in p.copied.items():
        copy = p.nets.copies[name][1]
        reads[name] = net[p.version(copy.of, version) // copy.every]
    return reads


def declare_updates(p: Parts, loops: Loops, samples: Samples) -> Learner:
    """Appends the updates of a phase; returns the learner.

    Args:
        p: the parts of the program.
        loops: say when gradients and updates are.
        samples: what they learn from.
    """
    turn = torch.zeros(1, dtype=torch.int64, device=p.device)
    wholes = _wholes(p, loops, samples)

    def rows(read: Mapping[str, Any], *chosen: Any) -> Rows:
        whole = {
            name: value.all() if isinstance(value, Window) else value
            for name, value in read.items()
            if name in wholes
        }
        windows = {name: value for name, value in read.items() if name not in wholes}
        return rows_of(
            p.phase.learning, p.num_envs, windows, whole, turn, *chosen,
            memory=bool(p.memories.states),
        )  # fmt: skip

    blank = rows(_blank_reads(p, samples.windows, wholes), *_blank_choice(p, samples.sampling))
    probe = probe_loss(p, by_name(p.learned_names, p.learned), blank)
    turns = turns_of(p.phase.learning, p.updates)
    learner = Learner(p, probe, _work(p, blank, probe), turn, turns, blank.observations_each)
    state = p.program.object(p.named("learner"), learner)
    # Versions of the learner's state in an update: after each gradient, the mean, the step.
    count = loops.accumulate + (2 if p.reduction else 1)
    _declare_gradient(p, loops, samples, wholes, learner, rows, state, count)
    loop = loops.update.when
    if samples.sampling is not None:
        declare_new_priorities(p, loop, samples.sampling, state[count * p.program.u + 1])
    _declare_mean(p, loop, state, count)
    _declare_step(p, loop, learner, state, count)
    _declare_copies(p, loop)
    return learner


def _wholes(p: Parts, loops: Loops, samples: Samples) -> dict[str, Access]:
    """A gradient's reads of `samples.whole`, by name."""
    round_, count = loops.gradient.round, samples.steps + 1
    if p.prepare is not None:
        return {name: values[round_] for name, values in samples.whole.items()}
    return {
        name: values[round_ * count : (round_ + 1) * count]
        for name, values in samples.whole.items()
    }


def _blank_reads(
    p: Parts, windows: Mapping[str, Access], wholes: Mapping[str, Access]
) -> dict[str, Any]:
    """Zeros in the shapes of an update's reads, by name."""
    read: dict[str, Any] = {name: p.blank(access) for name, access in windows.items()}
    for name, access in wholes.items():
        shape = access.recurrent.shape
        if access.window:
            shape = (access.most, *shape)
        read[name] = torch.zeros(shape, dtype=access.recurrent.dtype, device=p.device)
    return read


def _blank_choice(p: Parts, sampling: Sampling | None) -> list[Any]:
    """Zeros in the shapes of what was sampled; None where groups of envs take turns."""
    if sampling is None:
        return [None]
    kinds = [access.recurrent for access in sampling.reads]
    return [torch.zeros(kind.shape, dtype=kind.dtype, device=p.device) for kind in kinds]


def _work(p: Parts, rows: Rows, probe: LossProbe) -> Work:
    """The memory of a gradient's activations, and the most rows that are computed at once.

    Raises:
        ValueError: the loss needs all rows at once, which are more than the settings allow.
    """
    learning, chunk = p.phase.learning, p.algorithm.args.learner_chunk
    needed = rows.count * rows.observations_each
    if learning.whole and chunk < needed:
        raise InvalidValue(
            f"expected learner_chunk to be at least {needed}, the observations of an update, as "
            f"with Learning(whole=True) they are learned from at once, got {chunk}"
        )
    limit = max(1, chunk // rows.observations_each)
    least = rows.count if learning.whole else 1
    return Work(
        rows.count, probe.bytes_each, least, limit, probe.gathered_each, probe.in_place_each
    )


def _declare_gradient(
    p: Parts,
    loops: Loops,
    samples: Samples,
    wholes: Mapping[str, Access],
    learner: Learner,
    rows: Callable[[Mapping[str, Any], Any], Rows],
    state: Recurrent,
    count: int,
) -> None:
    program, names, loop = p.program, p.learned_names, loops.gradient
    # Which of an update's gradients it is.
    nth = loop.round % loops.accumulate if loops.accumulate > 1 else constant(0)
    before = state[count * loop.update + nth]
    used = {"observations", *learner.used}
    if p.phase.learning.replay is not None and p.phase.learning.replay.n_step > 1:
        used |= {"rewards", "discounts", "played"}
    reads = {name: a for name, a in {**samples.windows, **wholes}.items() if name in used}
    choice = [] if samples.sampling is None else samples.sampling.reads
    moments = (nth,) if loops.accumulate > 1 else ()

    def function(*read: Any) -> tuple[()]:
        windows_by_name = dict(zip(reads, read, strict=False))
        rest = read[len(reads) :]
        batch_rows = rows(windows_by_name, *(rest[: len(choice)] if choice else [None]))
        of_update = rest[-1] if moments else None
        nets = by_name(names, rest[len(choice) : len(choice) + len(names)])
        learner.compute_gradient(nets, batch_rows, of_update)
        return ()

    program.operation(
        p.named("gradient"), function, role="learn", **loop.when, work=learner.work,
        warm_up=function, moments=moments,
        reads=[*reads.values(), *choice, *weights_at(p, loop.update).values(), before],
        writes=[state[before.first + 1]],
    )  # fmt: skip


def _declare_mean(p: Parts, loop: Mapping[str, Any], state: Recurrent, count: int) -> None:
    """Appends the mean of the gradients of several processes, if there are several."""
    reduction, u = p.reduction, p.program.u
    if reduction is None:
        return

    def function(learner: Learner) -> tuple[()]:
        reduction.average(learner.weights.gradient)
        return ()

    p.program.operation(
        p.named("average gradient"), function, role="reduce", captured=reduction.captured, **loop,
        reads=[state[count * u + count - 2]], writes=[state[count * u + count - 1]],
    )  # fmt: skip


def _declare_step(
    p: Parts, loop: Mapping[str, Any], learner: Learner, state: Recurrent, count: int
) -> None:
    """Appends the optimizer's step."""
    u = p.program.u
    trained = [(p.trained[name], p.version(name, u)) for name in p.trains]

    def function(*_: Any) -> tuple[()]:
        learner.apply_gradient()
        return ()

    p.program.operation(
        p.named("update"), function, role="learn", **loop, warm_up=lambda *_: learner.try_step(),
        reads=[state[count * u + count - 1], *(net[at] for net, at in trained)],
        writes=[state[count * (u + 1)], *(net[at + 1] for net, at in trained)],
    )  # fmt: skip


def _declare_copies(p: Parts, loop: Mapping[str, Any]) -> None:
    """Appends the updates of networks that are copies, such as a target network."""
    program = p.program
    for name, versions in p.copied.items():
        copy = p.nets.copies[name][1]
        if copy.of not in p.trains:
            continue
        number = (program.u + 1) // copy.every

        def function(source: nn.Module, target: nn.Module, tau: float = copy.tau) -> tuple[()]:
            if tau == 1:
                copy_weights(source, target)
            else:
                weights = p.nets.weights
                move_weights(source, weights.precise_parameters(source), target, tau)
            return ()

        program.operation(
            f"copy {copy.of} to {name}", function, role="copy", **loop, nth=copy.every,
            reads=[p.trained[copy.of][program.u + 1], versions[number - 1]],
            writes=[versions[number]],
            copies=program.t * copy.every if copy.tau == 1 else None,
        )  # fmt: skip
