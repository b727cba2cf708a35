"""States of envs: taken, put back, copied from env to env, pickled."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cule.engine import Engine

VERSION = 1
# What makes up an env, by the names of the engine's tensors; all have the env as first axis.
_TENSORS = (
    "ram", "cartridge_bytes", "pictures", "pooled", "observations", "rewards", "raw_rewards", "terminated", "truncated",
    "lives", "frame_numbers", "episode_frame_numbers", "faults",
)  # fmt: skip
# These have the env as second axis, and are there only without a reset pool.
_RANDOM_TENSORS = ("noop_random", "env_random")


@dataclass
class State:
    """The states of some envs.

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

    def put(self, engine: Engine, env_ids: torch.Tensor) -> None:
        """Makes envs `env_ids` what these states are.

        Raises:
            ValueError: the version, the games, the number of states or the shape or dtype of their parts does not fit.
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
        for name, target in targets.items():
            target[env_ids] = self.tensors[name].to(engine.device)
