"""All stores of a plan: from which an operation reads, and what a checkpoint has of them."""

from __future__ import annotations

from typing import Any

import torch

from cule.train.plan.memory import Allocation, slots_of
from cule.train.plan.polyhedra import Read
from cule.train.plan.program import Access, Operation, Recurrent
from cule.train.plan.stores import Store, make_store


class Storage:
    """All stores of a plan, and the constants that slots are made of."""

    def __init__(self, allocations: dict[Recurrent, Allocation], device: torch.device):
        self.device = device
        self.far: dict[Recurrent, Store] = {}
        self.near: dict[Recurrent, Store] = {}
        # Of the first indices, for reads that never go beyond them.
        self.first: dict[Recurrent, Store] = {}
        self._early: set[Read] = set()
        self._ranges: dict[int, torch.Tensor] = {}
        for recurrent, allocation in allocations.items():
            self.far[recurrent] = make_store(
                recurrent, allocation.length, device, host=allocation.host
            )
            if allocation.near:
                self.near[recurrent] = make_store(recurrent, allocation.near, device)
            if allocation.early.reads:
                slots = slots_of(allocation.early)
                self.first[recurrent] = make_store(recurrent, slots, device)
                self._early |= allocation.early.reads

    def begin(self, recurrent: Recurrent, value: Any) -> None:
        """Stores the initial value of a Recurrent, at index 0."""
        self.far[recurrent].begin(value)
        for some in (self.near, self.first):
            if recurrent in some:
                some[recurrent].begin(value)

    def is_early(self, access: Access, operation: Operation) -> bool:
        """Whether an operation reads only the first indices of a Recurrent, which are kept."""
        return access.recurrent in self.first and (operation, str(access)) in self._early

    def of(self, recurrent: Recurrent, operation: Operation) -> Store:
        """The store of the newest values from which an operation reads a Recurrent."""
        if operation.role in ("simulate", "act") and recurrent in self.near:
            return self.near[recurrent]
        return self.far[recurrent]

    def range(self, length: int) -> torch.Tensor:
        """0 .. length - 1 on the device."""
        if length not in self._ranges:
            self._ranges[length] = torch.arange(length, device=self.device)
        return self._ranges[length]

    @property
    def _kinds(self) -> dict[str, dict[Recurrent, Store]]:
        return {"far": self.far, "near": self.near, "first": self.first}

    def state_dict(self) -> dict[str, Any]:
        """The content of all stores."""
        return {
            kind: {r.name: store.state_dict() for r, store in some.items()}
            for kind, some in self._kinds.items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned."""
        for kind, some in self._kinds.items():
            for recurrent, store in some.items():
                store.load_state_dict(state[kind][recurrent.name])
