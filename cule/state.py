"""States of envs: taken, put back, copied from env to env, pickled, written to files."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

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

    @staticmethod
    def _games(engine: Engine, env_ids: torch.Tensor) -> list[tuple[str, int, int]]:
        groups = engine.tensors["group"].view(torch.int32)[env_ids].tolist()
        return [(engine.groups[g].game.name, engine.groups[g].mode, engine.groups[g].difficulty) for g in groups]

    @staticmethod
    def take(engine: Engine, env_ids: torch.Tensor) -> State:
        """The states of envs `env_ids` (int64)."""
        tensors = {name: engine.tensors[name][env_ids] for name in _TENSORS}
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
            raise ValueError(f"expected a state of version {VERSION}, got version {self.version}")
        games = State._games(engine, env_ids)
        if len(games) != len(self.games):
            raise ValueError(f"expected {len(games)} states, one for each env, got {len(self.games)}")
        if games != self.games:
            mine, its = next((a, b) for a, b in zip(games, self.games, strict=True) if a != b)
            raise ValueError(f"expected a state of (game, mode, difficulty) {mine}, got one of {its}")
        targets = {name: engine.tensors[name] for name in _TENSORS} | {"records": engine.records()}
        targets |= {name: engine.tensors[name].t() for name in _RANDOM_TENSORS if name in engine.tensors}
        if set(targets) != set(self.tensors):
            raise ValueError("expected a state of an env with the same reset_pool_size, 0 or not 0")
        for name, target in targets.items():
            part = self.tensors[name]
            if part.shape[1:] != target.shape[1:]:
                raise ValueError(
                    f"expected {name} of shape {tuple(target.shape[1:])} for each env, "
                    f"got {tuple(part.shape[1:])}: the envs were made with other options"
                )
            if len(part) != len(games) or part.dtype != target.dtype:
                raise ValueError(
                    f"expected {name} to hold {target.dtype} for {len(games)} envs, got {part.dtype} for {len(part)}"
                )
        if not trusted:
            self._check_contents(engine, env_ids)
        for name, target in targets.items():
            target[env_ids] = self.tensors[name].to(engine.device)

    def _check_contents(self, engine: Engine, env_ids: torch.Tensor) -> None:
        """Looks whether playing could have left these states: they hold indices, which nobody checks later.

        Raises:
            ValueError: it could not.
        """
        records, cartridges = (self.tensors[name].cpu().contiguous() for name in ("records", "cartridge_bytes"))
        configs = engine.tensors["configs"].cpu()
        groups = engine.tensors["group"].view(torch.int32)[env_ids].cpu()
        found = _core.find_misfit_state(
            records.data_ptr(), cartridges.data_ptr(), configs.data_ptr(), groups.data_ptr(), len(groups)
        )
        for name in _RANDOM_TENSORS:
            if name in self.tensors:
                used = self.tensors[name][:, -1].cpu().view(torch.int32)
                wrong = torch.nonzero((used < 0) | (used >= _core.RANDOM_WORDS)).flatten().tolist()
                if wrong:
                    found = (wrong[0], "the random numbers")
        if found is not None:
            index, part = found
            raise ValueError(f"expected states as playing leaves them, got state {index}, where {part} cannot be so")

    # Files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the states to a file, which holds what it held before until all is written.

        Raises:
            ValueError: the file cannot be written.
        """
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
                return State(VERSION, games, dict(parts["tensors"]))
            except (RuntimeError, KeyError, TypeError, ValueError, pickle.UnpicklingError) as problem:
                raise ValueError(f"expected {path} to hold states as State.save writes them: {problem}") from problem


# So that torch.load, which by default makes nothing but tensors and plain values, makes these, too.
torch.serialization.add_safe_globals([State])
