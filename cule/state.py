"""States of envs: taken, put back, copied from env to env, pickled, written to files."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import torch

from cule import _core
from cule.engine import Engine
from cule.sealed import Kind

VERSION = 2
# Of torch.save's making.
_FILE = Kind("state", VERSION)
# What makes up an env, by the names of the engine's tensors; all have the env as first axis.
_TENSORS = (
    "ram", "cartridge_bytes", "pictures", "pooled", "observations", "rewards", "raw_rewards", "terminated", "truncated",
    "lives", "frame_numbers", "episode_frame_numbers", "faults",
)  # fmt: skip
# These have the env as second axis, and are there only without a reset pool.
_RANDOM_TENSORS = ("noop_random", "env_random")


def _oddity(part: Any) -> str | None:
    """What keeps something from being a tensor with all its elements in memory, or None."""
    if not isinstance(part, torch.Tensor):
        return f"a {type(part).__name__}"
    # Subclasses that stand for other tensors, or for none.
    if type(part).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return f"a {type(part).__name__}"
    if part.is_nested:
        return "a nested one"
    if part.layout != torch.strided:
        return f"one of layout {part.layout}"
    if part.is_quantized:
        return "a quantized one"
    if part.device.type not in ("cpu", "cuda"):
        return f"one on {part.device}"
    sizes = zip(part.shape, part.stride(), strict=True)
    furthest = sum((size - 1) * stride for size, stride in sizes)
    needed = (part.storage_offset() + furthest + 1) * part.itemsize if part.numel() else 0
    if part.untyped_storage().nbytes() < needed:
        return "one whose memory has been freed"
    return None


_assign: Any = operator.setitem


def _at_once(
    targets: Iterable[torch.Tensor], ids: torch.Tensor, parts: Iterable[torch.Tensor]
) -> None:
    """Assigns `target[ids] = part` to each. No byte code is between, where an interrupt could come."""
    with torch._C.DisableTorchFunction():  # which could be Python's
        deque(map(_assign, targets, repeat(ids), parts), maxlen=0)


@dataclass(eq=False)
class State:
    """The states of some envs. Can be pickled, and saved with torch.save and loaded with torch.load.

    Attributes:
        version: of this format.
        games: for each env, its game, mode and difficulty.
        tensors: the parts of the states, each with the env as first axis.
    """

    version: int
    games: list[tuple[str, int, int]]
    tensors: dict[str, torch.Tensor]

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same states, bit for bit, on whatever devices."""
        if not isinstance(other, State):
            return NotImplemented
        mine, theirs = self.tensors, other.tensors
        if (self.version, self.games, mine.keys()) != (other.version, other.games, theirs.keys()):
            return False
        pairs = [(mine[name].cpu(), theirs[name].cpu()) for name in mine]
        return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]  # its tensors can be written to

    @staticmethod
    def _games(engine: Engine, env_ids: torch.Tensor) -> list[tuple[str, int, int]]:
        groups = engine.tensors["group"].view(torch.int32)[env_ids].tolist()
        return [(engine.groups[g].game.name, engine.groups[g].mode, engine.groups[g].difficulty) for g in groups]

    @staticmethod
    def take(engine: Engine, env_ids: torch.Tensor) -> State:
        """The states of envs `env_ids` (int64)."""
        tensors = {name: engine.tensors[name][env_ids] for name in _TENSORS if name != "pictures"}
        tensors["pictures"] = engine.pictures(env_ids).flatten(-2)
        tensors["records"] = engine.records()[env_ids]
        for name in _RANDOM_TENSORS:
            if name in engine.tensors:
                tensors[name] = engine.tensors[name].t()[env_ids]
        return State(VERSION, State._games(engine, env_ids), tensors)

    def put(self, engine: Engine, env_ids: torch.Tensor, *, trusted: bool = False) -> None:
        """Makes envs `env_ids` what these states are.

        States that are `trusted`, as the engine has just given them, are not looked into, and stay on the device.

        Raises:
            ValueError: the version, the games, the number of states or their parts' shapes, dtypes or contents do not
                fit.
        """
        if self.version != VERSION:
            raise ValueError(f"expected a state of version {VERSION}, got version {self.version!r}")
        if not trusted:
            self._check_form()
        games = State._games(engine, env_ids)
        if len(games) != len(self.games):
            raise ValueError(f"expected {len(games)} states, one for each env, got {len(self.games)}")
        if games != self.games:
            mine, its = next((a, b) for a, b in zip(games, self.games, strict=True) if a != b)
            raise ValueError(f"expected a state of (game, mode, difficulty) {mine}, got one of {its}")
        targets = {name: engine.tensors[name] for name in _TENSORS} | {"records": engine.records()}
        targets |= {name: engine.tensors[name].t() for name in _RANDOM_TENSORS if name in engine.tensors}
        self._check_parts(targets)
        if not trusted:
            self._check_contents(engine, env_ids)
        parts = []
        for name, target in targets.items():
            part = self.tensors[name].to(engine.device)
            shared = part.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
            parts.append(part.clone() if shared else part)
        # Each scanline of a state's pictures is where one that is not shared stands.
        rows = torch.arange(_core.PICTURE_ROWS, device=engine.device).to(torch.uint8)
        _at_once([*targets.values(), engine.tensors["row_of"]], env_ids, [*parts, rows])

    def _check_form(self) -> None:
        """Looks whether games and tensors are of the types that the class names, whatever the env.

        Raises:
            ValueError: it is not.
        """
        games, tensors = self.games, self.tensors
        if not isinstance(games, list) or not all(
            isinstance(game, tuple) and [type(part) for part in game] == [str, int, int]
            for game in games
        ):
            wanted = "expected games as a list of (game, mode, difficulty)"
            raise ValueError(f"{wanted}, got {games!s:.100}")
        if not isinstance(tensors, dict) or not all(isinstance(name, str) for name in tensors):
            wanted = "expected tensors as a dict of tensors by their names"
            raise ValueError(f"{wanted}, got {tensors!s:.100}")
        for name, part in tensors.items():
            if oddity := _oddity(part):
                raise ValueError(f"expected {name} to be a plain tensor, got {oddity}")

    def _check_parts(self, targets: dict[str, torch.Tensor]) -> None:
        """Looks whether the parts are named, shaped and typed as an engine's, a row for each state.

        Raises:
            ValueError: they do not.
        """
        if set(targets) != set(self.tensors):
            raise ValueError("expected a state of an env with the same reset_pool_size, 0 or not 0")
        count = len(self.games)
        for name, target in targets.items():
            part = self.tensors[name]
            if part.shape[1:] != target.shape[1:]:
                raise ValueError(
                    f"expected {name} of shape {tuple(target.shape[1:])} for each env, "
                    f"got {tuple(part.shape[1:])}: the envs were made with other options"
                )
            if part.shape[:1] != (count,) or part.dtype != target.dtype:
                rows = len(part) if part.dim() else "no"
                raise ValueError(
                    f"expected {name} to hold {target.dtype} for {count} envs, "
                    f"got {part.dtype} for {rows}"
                )

    def _check_contents(self, engine: Engine, env_ids: torch.Tensor) -> None:
        """Looks whether playing could have left these states: they hold indices, which nobody checks later.

        Raises:
            ValueError: it could not.
        """
        records, cartridges = (self.tensors[name].cpu().contiguous() for name in ("records", "cartridge_bytes"))
        configs = engine.tensors["configs"].cpu()
        groups = engine.tensors["group"].view(torch.int32)[env_ids].cpu()
        parts = (records, cartridges, configs, groups)
        found = _core.find_misfit_state(*(part.numpy() for part in parts))
        for name in _RANDOM_TENSORS:
            if name in self.tensors:
                used = self.tensors[name][:, -1].cpu().view(torch.int32)
                wrong = torch.nonzero((used < 0) | (used >= _core.RANDOM_WORDS)).flatten().tolist()
                if wrong:
                    found = (wrong[0], "the random numbers")
        for name in ("terminated", "truncated"):
            wrong = torch.nonzero(self.tensors[name] > 1).flatten().tolist()
            if wrong:
                found = (wrong[0], f"what {name} says")
        if found is not None:
            index, part = found
            raise ValueError(f"expected states as playing leaves them, got state {index}, where {part} cannot be so")

    # Files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the states to a file, which holds what it held before until all is written.

        Raises:
            ValueError: the file cannot be written, or the states hold what is no plain tensor.
        """
        self._check_form()
        tensors = {name: tensor.cpu() for name, tensor in self.tensors.items()}
        parts = {"games": [list(game) for game in self.games], "tensors": tensors}
        _FILE.write(Path(path), lambda file: torch.save(parts, file), self.version)

    @staticmethod
    def load(path: str | Path) -> State:
        """The states that `save` wrote to a file, on the CPU; `restore_state` moves them to its device.

        Raises:
            ValueError: the file cannot be read, is no state file, is damaged, or is of another version.
        """
        with _FILE.reading(Path(path)) as file:
            try:
                parts = torch.load(file, map_location="cpu", weights_only=True)
                games = [(str(name), int(mode), int(difficulty)) for name, mode, difficulty in parts["games"]]
                state = State(VERSION, games, dict(parts["tensors"]))
                state._check_form()
            except Exception as problem:  # torch.load lets out whatever its parts raise
                raise ValueError(f"expected {path} to hold states as State.save writes them: {problem}") from problem
        return state


# So that torch.load, which by default makes nothing but tensors and plain values, makes these, too.
torch.serialization.add_safe_globals([State])
