"""The operations of a step, act and emulate, and the one that hands over weights to acting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch
from gymnasium.spaces import Box
from torch import nn

from cule.errors import InvalidValue
from cule.train.declaration import Acting, parts_of
from cule.train.envs.async_cpu import AsyncCpuEnvs
from cule.train.envs.collector import Collector
from cule.train.lowering.method_checks import check_dtypes, check_tensors
from cule.train.lowering.networks import by_name
from cule.train.lowering.parts import Parts
from cule.train.lowering.peak_bytes import PeakBytes
from cule.train.lowering.versions import rounds
from cule.train.nn import draws
from cule.train.nn.weights import copy_weights
from cule.train.plan.index import Index
from cule.train.plan.program import Access


def _handed_over(p: Parts) -> int:
    """The first step at whose end acting gets new weights."""
    learning = p.phase.learning
    return p.versions.first + (learning.period - 1 if learning.lag else 0)


def _versions(p: Parts) -> Index:
    """The version of the weights that act at step t: how often they were handed over before."""
    period = p.program.period
    return rounds(_handed_over(p), period, p.t - 1).at_least(0)


def _draws_at(p: Parts, step: torch.Tensor) -> AbstractContextManager[None]:
    """The context in which acting draws the random numbers of a step, (1,) int64."""
    if p.collector.first_step:
        step = step + p.collector.first_step
    return draws.keyed(p.algorithm.args.seed, p.collector.first_env, step)


def declare_acting(p: Parts, acting: Acting) -> None:
    """Appends the operation that chooses actions."""
    networks, t, stored = list(p.actors), p.t, p.declaration.stored
    _check_vectors(p)
    peak = PeakBytes()
    returned = _probe_acting(p, acting, peak)
    evaluated = [name for name in p.algorithm.evaluates if name in returned]
    names = ["actions", *p.algorithm.keeps.keys() - {"actions"}]
    outputs, memory = [*names, *acting.writes, *evaluated], p.memories.before(t)
    own = len(networks) + len(memory)

    @torch.no_grad()
    def function(observations: torch.Tensor, *read: Any) -> tuple[torch.Tensor, ...]:
        nets = p.acting_nets(networks, read[: len(networks)])
        in_step = p.memories.step(nets, read[len(networks) : own])
        with p.autocast, _draws_at(p, read[-1]), in_step as carry:
            values = acting.act(nets, observations, *read[own:-1])
        return (*(values[name] for name in outputs), *p.memories.states_after(carry))

    written = [stored[name][t] for name in names] + list(acting.writes.values())
    written += [replace(stored[f"acting's {name}"][t], same=name) for name in evaluated]
    written += p.memories.after(t)
    p.program.operation(
        "act", function, role="act", by_row=True, in_part=draws.part, warm_up=function,
        work=peak.work_of(p.num_envs),
        reads=[
            p.declaration.observation[t],
            *(p.actors[name][_versions(p)] for name in networks), *memory, *acting.reads,
        ],
        writes=written, moments=(t,),
    )  # fmt: skip


def _check_vectors(p: Parts) -> None:
    """Checks that actions are stored as the envs have them: vectors, or one of each player.

    Raises:
        ValueError: they are stored otherwise.
    """
    space = getattr(p.collector.env, "single_action_space", None)
    stored, players = p.declaration.stored["actions"], p.declaration.num_players
    if players > 1 and stored.shape[1:] != (players,):
        raise InvalidValue(
            f'expected keeps to have "actions": (torch.int64, {players}) or none, as the envs have '
            f"{players} players, got {stored.dtype} of shape {stored.shape[1:]}"
        )
    if isinstance(space, Box) and (
        stored.shape[1:] != space.shape or not stored.dtype.is_floating_point
    ):
        size = space.shape[0]
        raise InvalidValue(
            f'expected keeps to have "actions": (torch.float32, {size}), as the envs have vectors '
            f"of {size} numbers, got {stored.dtype} of shape {stored.shape[1:]}"
        )


@torch.no_grad()
def _probe_acting(p: Parts, acting: Acting, peak: PeakBytes) -> Mapping[str, torch.Tensor]:
    """Calls `act` with zeros, and checks what it returns; measures the memory of the call."""
    reads = (p.declaration.observation[p.t], *acting.reads)
    values = [p.blank(read) if read.window else p.zeros(read) for read in reads]
    nets = by_name(list(p.nets.acting), list(p.nets.acting.values()))
    step = torch.zeros(1, dtype=torch.int64, device=p.device)
    in_step = p.memories.step(nets, [p.zeros(read) for read in p.memories.before(p.t)])
    with peak, p.autocast, _draws_at(p, step), in_step as carry:
        result = acting.act(nets, *values)
    p.memories.states_after(carry)
    writes, evaluates = acting.writes, p.algorithm.evaluates
    names = dict.fromkeys(["actions", *p.algorithm.keeps, *writes])
    check_tensors("act", result, names)
    numbers = {*names, *evaluates}
    for name, value in result.items():
        wanted: tuple[int, ...] = (p.num_envs,)
        if name in writes:
            wanted = writes[name].recurrent.shape
        elif name in p.declaration.stored:
            wanted = p.declaration.stored[name].shape
        elif name in evaluates:
            wanted = p.declaration.stored[f"acting's {name}"].shape
        if name in numbers and tuple(value.shape) != wanted:
            raise InvalidValue(
                f"expected act to return {name} with a value for each of {p.num_envs} envs, "
                f"{wanted}, got {tuple(value.shape)}; keeps says what more than a number for each "
                "env is, such as (torch.float32, 6)"
            )
    kinds = {name: recurrent.dtype for name, recurrent in p.declaration.stored.items()}
    kinds |= {name: parts_of(kind)[0] for name, kind in evaluates.items()}
    check_dtypes("act", result, kinds | {n: a.recurrent.dtype for n, a in writes.items()})
    return result


def declare_emulating(p: Parts) -> None:
    """Appends the operation that plays a step of the envs."""
    t, gamma, async_envs = p.t, p.algorithm.args.gamma, p.collector.async_envs
    d, stacked = p.declaration, p.declaration.observation.stack > 1

    @torch.no_grad()
    def as_stored(
        frames: torch.Tensor,
        rewards: torch.Tensor,
        terminated: torch.Tensor,
        started: torch.Tensor,
    ) -> tuple[Any, ...]:
        discounts = gamma * (~terminated).float()
        shown = (frames, started) if stacked else frames
        return shown, rewards, discounts, ~started, started

    @torch.no_grad()
    def function(actions: torch.Tensor, collector: Collector) -> tuple[Any, ...]:
        return as_stored(*collector.step(actions))

    p.program.operation(
        "emulate", function, role="simulate", captured=p.collector.captured,
        asynchronous=None if async_envs is None else _AsyncEmulation(async_envs, as_stored),
        reads=[d.stored["actions"][t], p.envs[t]],
        writes=[
            d.observation[t + 1], d.stored["rewards"][t], d.stored["discounts"][t],
            d.stored["played"][t], d.started[t + 1], p.envs[t + 1],
        ],
    )  # fmt: skip


class _AsyncEmulation:
    """Steps of envs on the CPU by parts, with results as they are stored.

    Args:
        async_envs: the envs.
        as_stored: turns what a step of the envs returns into what is stored of it.
    """

    def __init__(self, async_envs: AsyncCpuEnvs, as_stored: Callable[..., tuple[Any, ...]]):
        self._as_stored, self._results = as_stored, async_envs.results
        self.parts, self.is_done = async_envs.parts, async_envs.is_done
        self.stage, self.staged = async_envs.stage, async_envs.staged
        self.send, self.recv = async_envs.send, async_envs.recv

    def results(self, part: int) -> tuple[Any, ...]:
        """See plan/program.py's AsyncOperation."""
        return self._as_stored(*self._results(part))


def declare_handing_over(p: Parts) -> None:
    """Appends the operations that copy weights to the networks that act.

    The plan drops those that would change nothing.
    """
    program, updates = p.program, p.updates
    several, first = len(p.versions.learnings) > 1, _handed_over(p)
    for name, acting in p.actors.items():
        version, copies = updates * (program.u + 1), program.t * updates
        if several:
            version = p.versions.after(name, p.t)
            # Of which version a version is a copy.
            copies = version.with_t(first + (program.t - 1) * program.period)
        weights: Access = p.trained[name][version]

        def function(source: nn.Module, target: nn.Module) -> tuple[()]:
            copy_weights(source, target)
            return ()

        program.operation(
            f"hand over {name}", function, role="hand over",
            every=program.period, start=first,
            reads=[weights, acting[program.u]], writes=[acting[program.u + 1]],
            copies=copies,
        )  # fmt: skip
