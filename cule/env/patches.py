"""The patches of an AtariEnv: each env has its own, in memory of the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from cule import _core
from cule.engine import Engine
from cule.errors import InvalidType, InvalidValue, shown
from cule.facts.modifications import modification
from cule.facts.patches import Patch, patch_of
from cule.rom import Game


def patches_of(given: Any, game: Game) -> list[Patch]:
    """What a user gives as `patches`, as the patches of an env that plays `game`.

    Args:
        given: None; or a patch, the name of one of the game's modifications, or a sequence of both.
        game: the game.

    Raises:
        TypeError, ValueError: it is none of these, there is no such modification, or there are too
            many patches.
    """
    if given is None:
        return []
    if isinstance(given, (str, Patch, Mapping)):
        given = [given]
    if isinstance(given, bytes) or not isinstance(given, Sequence):
        raise InvalidType(
            "expected patches to be cule.Patch, names of modifications, or a list of them, got "
            f"{shown(given)}"
        )
    found: list[Patch] = []
    for one in given:
        if isinstance(one, str):
            found += modification(game.name, one).patches
        else:
            found.append(patch_of(one))
    if len(found) > _core.MAX_PATCHES:
        raise InvalidValue(
            f"expected at most {_core.MAX_PATCHES} patches for an env, got {len(found)}"
        )
    return found


class Patches:
    """The rows of a batch's patches, (rows, num_envs, 8) uint8; at first there are none.

    Args:
        engine: the engine that applies them.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._outgrown: list[torch.Tensor] = []  # earlier tables, which captured CUDA graphs read

    def set(self, given: Any, env_ids: torch.Tensor) -> None:
        """Replaces the patches of some envs.

        Args:
            given: as `patches_of` takes it; a name means each game's own modification.
            env_ids: (n,) int64: the envs.

        Raises:
            TypeError, ValueError: as `patches_of`.
        """
        engine = self._engine
        groups = engine.tensors["group"].view(torch.int32)[env_ids]
        rows_of = {
            number: [patch.encoded() for patch in patches_of(given, engine.groups[number].game)]
            for number in groups.unique().tolist()
        }
        most = max(map(len, rows_of.values()), default=0)
        table = self._table(most)
        if table is None:
            return
        fresh = torch.zeros((len(table), len(env_ids), _core.PATCH_BYTES), dtype=torch.uint8)
        numbers = groups.cpu()
        for number, rows in rows_of.items():
            if rows:
                filled = torch.tensor(rows, dtype=torch.uint8)[:, None]
                fresh[: len(rows), numbers == number] = filled
        table[:, env_ids] = fresh.to(table.device)
        # Without any patches a step does not look for them. The table stays for the next ones.
        engine.batch.num_patches = len(table) if bool(table.any()) else 0

    def _table(self, count: int) -> torch.Tensor | None:
        """The table, with room for `count` patches of each env; None: there has never been one."""
        engine = self._engine
        old = engine.tensors.get("patches")
        if count <= (0 if old is None else len(old)):
            return old
        shape = (count, engine.num_envs, _core.PATCH_BYTES)
        table = torch.zeros(shape, dtype=torch.uint8, device=engine.device)
        if old is not None:
            table[: len(old)] = old
            self._outgrown.append(old)
        engine.memory.place("patches", table)
        return table
