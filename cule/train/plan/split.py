"""Splits a program in two, for a process that acts and one that learns, with messages between them.

Acting and emulating write tensors that learning reads: an operation of the acting part sends them
after each step, and one of the learning part receives them, in place of the acting operations.
Learning hands over networks: the learning part sends them, and the acting part receives them at the
same step. All other operations and indices are the program's, so that both parts together compute
what the program does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from cule.errors import InvalidValue
from cule.train.plan.domain import Domain
from cule.train.plan.program import Access, AsyncOperation, Operation, Program, Recurrent

ACTS = ("act", "simulate")


@dataclass(frozen=True)
class Ends:
    """The functions by which one part sends or receives.

    Attributes:
        steps: sends the values of a step, in their order; or receives and returns them. A stacked
            observation is its newest frame and whether an episode started with it: two values to
            send, a pair to return.
        network: gets a network's name and the network, and sends it or receives into it.
    """

    steps: Callable[..., Any]
    network: Callable[[str, Any], None]


def crossing(program: Program) -> list[Access]:
    """The writes of acting and emulating that other operations read, in the program's order.

    Raises:
        ValueError: one is not written at each step, or acting reads tensors that learning writes.
    """
    acting = [o for o in program.operations if o.role in ACTS]
    read = {a.recurrent for o in program.operations if o.role not in ACTS for a in o.reads}
    _check_acting(program, acting)
    crosses = []
    for operation in acting:
        some = [write for write in operation.returned if write.recurrent in read]
        if some and operation.domain != Domain():
            raise InvalidValue(
                f"expected {operation.name} at each step, as processes that only learn read what "
                f"it writes ({some[0].recurrent.name}), got another domain"
            )
        crosses += some
    return crosses


def _check_acting(program: Program, acting: list[Operation]) -> None:
    handed = {o.writes[0].recurrent for o in _handing_over(program)}
    others = {w.recurrent for o in program.operations if o.role not in ACTS for w in o.writes}
    for operation in acting:
        for access in operation.reads:
            if access.recurrent in others - handed:
                raise InvalidValue(
                    f"expected {operation.name} to read nothing of learning but networks, where "
                    f"other processes learn, got {access.recurrent.name}"
                )


def _handing_over(program: Program) -> list[Operation]:
    """The operations that copy networks for acting."""
    read = {a.recurrent for o in program.operations if o.role in ACTS for a in o.reads}
    copies = [o for o in program.operations if o.role in ("copy", "hand over")]
    return [o for o in copies if o.writes[0].recurrent in read]


def acting_part(program: Program, ends: Ends) -> Program:
    """The program of a process that only acts.

    Raises:
        ValueError: see crossing.
    """
    parts = crossing(program)
    operations = [o for o in program.operations if o.role in ACTS]
    sent: list[Access] = []
    for part in parts:
        if part.recurrent.stack == 1:
            sent.append(part)
            continue
        number = next(i for i, o in enumerate(operations) if part in o.writes)
        operations[number], frames = _with_frames(operations[number], part)
        sent += frames
    last = max(operation.place for operation in operations)

    def send(*values: Any) -> tuple[()]:
        ends.steps(*values)
        return ()

    sending = Operation(
        "send", "effect", Domain(), tuple(sent), (), send, captured=False,
        place=(last[0], last[1] + 1),
    )  # fmt: skip
    operations.append(sending)
    for copy in _handing_over(program):
        target = copy.writes[0].recurrent

        def receive(net: Any, name: str = target.name) -> tuple[()]:
            ends.network(name, net)
            return ()

        operations.append(
            replace(copy, function=receive, reads=copy.reads[1:], copies=None, captured=False)
        )
    return program.with_operations(operations)


def _with_frames(operation: Operation, part: Access) -> tuple[Operation, list[Access]]:
    """An operation that also writes the newest frames of a stack, each once, and `started`."""
    stacked, place = part.recurrent, operation.returned.index(part)
    asynchronous = operation.asynchronous
    frames = Recurrent(f"{stacked.name} (newest)", stacked.shape, stacked.dtype)
    started = Recurrent(f"{stacked.name} (started)", stacked.shape[:1], torch.bool)
    function = operation.function

    def with_frames(*reads: Any) -> tuple[Any, ...]:
        result = function(*reads)
        values = result if isinstance(result, tuple) else (result,)
        return *values, *values[place]

    more = [Access(r, part.first, part.stop, window=False) for r in (frames, started)]
    return replace(
        operation, function=with_frames, writes=(*operation.writes, *more),
        asynchronous=None if asynchronous is None else _AsyncWithFrames(asynchronous, place),
    ), more  # fmt: skip


class _AsyncWithFrames:
    """An AsyncOperation whose results have the newest frames of a stack and `started`, too.

    Args:
        played: the operation.
        place: that of the stack among its results.
    """

    def __init__(self, played: AsyncOperation, place: int):
        self.played, self.place, self.parts = played, place, played.parts
        self.stage, self.staged, self.send = played.stage, played.staged, played.send
        self.recv, self.is_done = played.recv, played.is_done

    def results(self, part: int) -> tuple[Any, ...]:
        """See AsyncOperation."""
        values = self.played.results(part)
        return *values, *values[self.place]


def learning_part(program: Program, ends: Ends) -> Program:
    """The program of a process that only learns.

    Raises:
        ValueError: see crossing.
    """
    parts = crossing(program)
    acting = [o for o in program.operations if o.role in ACTS]
    place = max(operation.place for operation in acting)
    received = Operation(
        "receive", "effect", Domain(), (), tuple(parts), lambda: tuple(ends.steps()),
        captured=False, place=place,
    )  # fmt: skip
    operations = [received, *(o for o in program.operations if o.role not in ACTS)]
    # Sent after the iteration's last steps have come, as their senders do it, too.
    last = min(parts, key=lambda part: (part.recurrent.stack, part.recurrent.slot_bytes))
    for copy in _handing_over(program):
        network = copy.writes[0]

        def send(net: Any, _: Any, name: str = network.recurrent.name) -> tuple[()]:
            ends.network(name, net)
            return ()

        sending = Operation(
            f"send {network.recurrent.name}", "effect", copy.domain, (network, last), (), send,
            captured=False, place=(copy.place[0], copy.place[1] + 1),
        )  # fmt: skip
        operations.append(sending)
    return program.with_operations(operations)
