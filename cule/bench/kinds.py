"""Which systems are measured in a case."""

from __future__ import annotations

from cule.bench.batches import BatchedAle, BatchedCule, BatchedEnvPool
from cule.bench.cases import Case
from cule.bench.systems import AleSystem, CuleSystem, EnvPoolSystem, OriginalSystem

Ours = CuleSystem | BatchedCule
Other = AleSystem | EnvPoolSystem | OriginalSystem | BatchedAle | BatchedEnvPool
# The systems besides cule, in the order of Case's `against_...`.
OTHERS: tuple[type[Other], ...] = (AleSystem, EnvPoolSystem, OriginalSystem)
BATCHED: tuple[type[Other], ...] = (BatchedAle, BatchedEnvPool, OriginalSystem)


def ours_of(case: Case) -> type[Ours]:
    """cule, as the case wants it."""
    return BatchedCule if case.env_groups else CuleSystem


def others_of(case: Case) -> list[type[Other]]:
    """The systems that are measured in a case besides cule."""
    asked = (case.against_ale, case.against_envpool, case.against_original)
    kinds = BATCHED if case.env_groups else OTHERS
    return [kind for kind, wanted in zip(kinds, asked, strict=True) if wanted]
