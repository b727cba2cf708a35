"""States of envs: taken, put back, copied from env to env, pickled, written to files."""

from __future__ import annotations

import operator
import reprlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cule import _core
from cule.console import Group
from cule.console.console import Snapshot
from cule.disk.sealed import Kind
from cule.engine import Engine
from cule.errors import InvalidValue, shown
from cule.rom import game_in_words

VERSION = 5
# Their content is what torch.save writes.
_FILE = Kind("state", VERSION)
# The env is the second axis of these tensors. They exist only without a reset pool.
_RANDOM_TENSORS = ("noop_random", "env_random")
# Only an env with sound, or with objects, has these.
_OPTIONAL_TENSORS = (("sound", "sounds"), ("boxes", "objects", "objects_left_out"))
_SOMETIMES = tuple(name for names in _OPTIONAL_TENSORS for name in names)
# The words of a record that say where an env's other random numbers go on.
_RANDOM_WORDS = [byte // 4 for byte in _core.RANDOM_BYTES]
# The engine's other tensors that hold the state of an env, except `records`: the env is their first
# axis.
_TENSORS = tuple(
    name
    for name, (_, life, _, _) in _core.Batch().arrays(True, False).items()
    if life in ("state", "output") and name not in ("records", *_RANDOM_TENSORS, *_SOMETIMES)
)


def _optional_of(engine: Engine) -> dict[str, torch.Tensor]:
    """What only some envs have, as views: of sound the samples of the last frame, (num_envs, 512).

    And objects, with the boxes of the last two frames.
    """
    found = {name: engine.tensors[name] for name in _SOMETIMES if name in engine.tensors}
    return found | ({"sounds": found["sounds"][:, -1]} if "sounds" in found else {})


def _oddity(part: Any) -> str | None:
    """Why a part is not a tensor with all its elements in memory; None if it is one."""
    if not isinstance(part, torch.Tensor):
        return f"a {type(part).__name__}"
    # A subclass that wraps other tensors, or has no elements.
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
    """Assigns `target[ids] = part` for each target; no interrupt can come between them."""
    with torch._C.DisableTorchFunction():  # which could be written in Python
        deque(map(_assign, targets, repeat(ids), parts), maxlen=0)


@dataclass(eq=False, repr=False)
class State:
    """The states of some envs. They can be pickled, and saved and loaded by torch.

    Attributes:
        version: of this format.
        games: for each env, its game (with the number of players if it is several: "pong for 2
            players"), mode and difficulty.
        tensors: the parts of the states, each with the env as first axis.
        include_rng: whether they hold random numbers; otherwise an env that they are put into goes
            on with its own.
    """

    version: int
    games: list[tuple[str, int, int]]
    tensors: dict[str, torch.Tensor]
    include_rng: bool = True

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same states, bit for bit. They may be on different devices."""
        if not isinstance(other, State):
            return NotImplemented
        mine, theirs = self.tensors, other.tensors
        if (self.version, self.games, self.include_rng, mine.keys()) != (
            other.version, other.games, other.include_rng, theirs.keys()
        ):  # fmt: skip
            return False
        pairs = [(mine[name].cpu(), theirs[name].cpu()) for name in mine]
        return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)

    def __repr__(self) -> str:
        """A line: how many states of which games. Their tensors have thousands of bytes each."""
        games = reprlib.repr(self.games)
        return f"State(version={self.version!r}, {len(self.games)} envs, games={games})"

    __hash__ = None  # type: ignore[assignment]  # its tensors can be written to

    @staticmethod
    def _games(engine: Engine, env_ids: torch.Tensor) -> list[tuple[str, int, int]]:
        groups = engine.tensors["group"].view(torch.int32)[env_ids].tolist()
        return [
            (engine.groups[g].game.words, engine.groups[g].mode, engine.groups[g].difficulty)
            for g in groups
        ]

    @staticmethod
    def take(engine: Engine, env_ids: torch.Tensor, include_rng: bool = True) -> State:
        """The states of envs `env_ids` (int64), with or without their random numbers."""
        made = {
            "pictures": engine.contents.pictures(env_ids).flatten(-2),
            "pooled": engine.contents.pooled(env_ids),
        }
        tensors = {
            name: engine.tensors[name][env_ids] for name in _TENSORS if name not in made
        } | made
        tensors |= {name: part[env_ids] for name, part in _optional_of(engine).items()}
        tensors["records"] = engine.contents.records()[env_ids]
        if include_rng:
            for name in _RANDOM_TENSORS:
                if name in engine.tensors:
                    tensors[name] = engine.tensors[name].t()[env_ids]
        else:
            tensors["records"][:, _RANDOM_WORDS] = 0
        return State(VERSION, State._games(engine, env_ids), tensors, include_rng)

    def consoles(self) -> list[tuple[Group, Snapshot]]:
        """The group of each state, and its console without pictures, which no program can read."""
        names = ("records", "ram", "cartridge_bytes")
        records, ram, cartridges = (self.tensors[name].cpu().numpy() for name in names)
        words, black = records.view(np.uint32), np.zeros((), np.uint8)
        groups = [Group(game_in_words(name), *settings) for name, *settings in self.games]
        return [
            (group, Snapshot(words[i], ram[i], cartridges[i], black))
            for i, group in enumerate(groups)
        ]

    def put(self, engine: Engine, env_ids: torch.Tensor, *, trusted: bool = False) -> None:
        """Puts these states into the envs `env_ids`.

        `trusted` states, which the engine has just given, are not checked and stay on the device.

        Raises:
            ValueError: the version, the games, the number of states, or a part's shape, dtype or
                content is wrong.
        """
        if self.version != VERSION:
            raise InvalidValue(
                f"expected a state of version {VERSION}, got version {shown(self.version)}"
            )
        if not trusted:
            self._check_form()
        games = State._games(engine, env_ids)
        if len(games) != len(self.games):
            raise InvalidValue(
                f"expected {len(games)} states, one for each env, got {len(self.games)}; to put "
                "one state into several envs, restore it to one of them and call copy_state"
            )
        if games != self.games:
            mine, its = next((a, b) for a, b in zip(games, self.games, strict=True) if a != b)
            raise InvalidValue(
                f"expected a state of (game, mode, difficulty) {mine}, got one of {its}"
            )
        targets = {name: engine.tensors[name] for name in _TENSORS} | {
            "records": engine.contents.records()
        }
        if self.include_rng:
            targets |= {
                name: engine.tensors[name].t() for name in _RANDOM_TENSORS if name in engine.tensors
            }
        optional = _optional_of(engine)
        self._check_parts(targets, optional)
        if not trusted:
            self._check_contents(engine, env_ids)
        for name, used in (("pooled", engine.keeps_pooled), ("observations", engine.options.stack)):
            if not used:
                del targets[name]
        targets |= optional
        parts = []
        for name, target in targets.items():
            if name in optional and name not in self.tensors:  # an env without them gave it
                parts.append(torch.zeros_like(target[env_ids]))
                continue
            part = self.tensors[name].to(engine.device)
            if name == "records" and not self.include_rng:
                part = part.clone()
                part[:, _RANDOM_WORDS] = target[env_ids][:, _RANDOM_WORDS]
            shared = part.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
            parts.append(part.clone() if shared else part)
        # In a state's pictures each scanline has a row of its own.
        rows = torch.arange(_core.PICTURE_ROWS, device=engine.device).to(torch.uint8)
        written = [*targets.values(), engine.tensors["row_of"]]
        parts.append(rows)
        if "sounds" in optional:  # the frames before the newest one, as after a reset
            written.append(engine.tensors["sounds"][:, :-1])
            parts.append(torch.tensor(_core.SILENCE, dtype=torch.uint8, device=engine.device))
        _at_once(written, env_ids, parts)

    def _check_form(self) -> None:
        """Checks the types of games and tensors, which do not depend on the env.

        Raises:
            ValueError: a type is wrong.
        """
        games, tensors = self.games, self.tensors
        if not isinstance(self.include_rng, bool):
            raise InvalidValue(
                f"expected include_rng to be True or False, got {self.include_rng!s:.100}"
            )
        if not isinstance(games, list) or not all(
            isinstance(game, tuple) and [type(part) for part in game] == [str, int, int]
            for game in games
        ):
            wanted = "expected games as a list of (game, mode, difficulty)"
            raise InvalidValue(f"{wanted}, got {shown(games)}")
        if not isinstance(tensors, dict) or not all(isinstance(name, str) for name in tensors):
            wanted = "expected tensors as a dict of tensors by their names"
            raise InvalidValue(f"{wanted}, got {shown(tensors)}")
        for name, part in tensors.items():
            if oddity := _oddity(part):
                raise InvalidValue(f"expected {name} to be a plain tensor, got {oddity}")

    def _check_parts(
        self, targets: dict[str, torch.Tensor], optional: dict[str, torch.Tensor]
    ) -> None:
        """Checks that the parts have the engine's names, shapes and dtypes, with a row a state.

        States of envs with and without sound or objects fit all kinds of env, and states of envs
        with images those without.

        Raises:
            ValueError: one is different.
        """
        given = set(self.tensors)
        incomplete = any(0 < len(given.intersection(of)) < len(of) for of in _OPTIONAL_TENSORS)
        if set(targets) != given.difference(_SOMETIMES) or incomplete:
            raise InvalidValue(
                "expected a state of an env with the same reset_pool_size, 0 or not 0"
            )
        count = len(self.games)
        targets = targets | {name: part for name, part in optional.items() if name in given}
        for name, target in targets.items():
            part = self.tensors[name]
            unused = name == "observations" and target.numel() == 0  # an env without images
            if part.shape[1:] != target.shape[1:] and not unused:
                raise InvalidValue(
                    f"expected {name} of shape {tuple(target.shape[1:])} for each env, "
                    f"got {tuple(part.shape[1:])}: the envs were made with other options"
                )
            if part.shape[:1] != (count,) or part.dtype != target.dtype:
                rows = len(part) if part.dim() else "no"
                raise InvalidValue(
                    f"expected {name} to hold {target.dtype} for {count} envs, "
                    f"got {part.dtype} for {rows}"
                )

    def _check_contents(self, engine: Engine, env_ids: torch.Tensor) -> None:
        """Checks that playing can produce these states, as nothing checks their indices later.

        Raises:
            ValueError: it cannot.
        """
        records, cartridges = (
            self.tensors[name].cpu().contiguous() for name in ("records", "cartridge_bytes")
        )
        configs = engine.tensors["configs"].cpu()
        groups = engine.tensors["group"].view(torch.int32)[env_ids].cpu()
        parts = (records, cartridges, configs, groups)
        found = _core.find_misfit_state(*(part.numpy() for part in parts))
        for name in _RANDOM_TENSORS:
            if name in self.tensors:
                words = self.tensors[name].cpu()
                used = words[:, -1].view(torch.int32)
                wrong = torch.nonzero((used < 0) | (used >= words.shape[1])).flatten().tolist()
                if wrong:
                    found = (wrong[0], "the random numbers")
        if "boxes" in self.tensors:
            counts = self.tensors["boxes"][:, :, 0, 0]
            impossible = ((counts < 0) | (counts >= self.tensors["boxes"].shape[2])).any(1)
            wrong = torch.nonzero(impossible).flatten().tolist()
            if wrong:
                found = (wrong[0], "boxes")
        for name in ("terminated", "truncated"):
            wrong = torch.nonzero(self.tensors[name] > 1).flatten().tolist()
            if wrong:
                found = (wrong[0], name)
        if found is not None:
            index, part = found
            raise InvalidValue(
                "expected states that playing can produce, "
                f"got state {index} with an impossible value in {part}"
            )

    # Files ----------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the states to a file. A file that was there is replaced once all is written.

        Raises:
            ValueError: the file cannot be written, or a part of the states is not a plain tensor.
        """
        self._check_form()
        tensors = {name: tensor.cpu() for name, tensor in self.tensors.items()}
        parts = {
            "games": [list(game) for game in self.games],
            "tensors": tensors,
            "include_rng": self.include_rng,
        }
        _FILE.write(Path(path), lambda file: torch.save(parts, file), self.version)

    @staticmethod
    def load(path: str | Path) -> State:
        """The states that `save` wrote to a file. They are on the CPU; `restore_state` moves them.

        Raises:
            ValueError: the file cannot be read, is not a state file, is damaged, or is of another
                version.
        """
        with _FILE.reading(Path(path)) as file:
            try:
                parts = torch.load(file, map_location="cpu", weights_only=True)
                games = [
                    (str(name), int(mode), int(difficulty))
                    for name, mode, difficulty in parts["games"]
                ]
                # Files of cule's first versions say nothing of random numbers: they hold them.
                included = parts.get("include_rng", True)
                state = State(VERSION, games, dict(parts["tensors"]), included)
                state._check_form()
            except Exception as problem:  # torch.load can raise any error
                raise InvalidValue(
                    f"expected {path} to hold states as State.save writes them: {problem}"
                ) from problem
        return state


# By default torch.load makes only tensors and plain values. This lets it make states, too.
torch.serialization.add_safe_globals([State])
