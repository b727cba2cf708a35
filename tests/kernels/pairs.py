"""The same envs on the CPU backend and on a simulated GPU: tests compare their memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from simulated import SimulatedEngine, SimulatedGpu

from cule.console import Group, Options, action_numbers
from cule.engine import Engine
from cule.rom import find_game
from tests.support.traces import SPARE, trace_words

NEXT_STEP, SAME_STEP, DISABLED = range(3)


class Pair:
    """The same envs on the CPU and on a simulated GPU."""

    def __init__(
        self,
        gpu: SimulatedGpu,
        games: Sequence[str],
        num_envs: int,
        options: Options,
        multiprocessors: int | None = None,
        num_players: int = 1,
    ):
        found = [find_game(game, num_players) for game in games]
        groups = [Group(game, game.facts["default_mode"], 0) for game in found]
        group_of_env = (np.arange(num_envs) * len(groups) // num_envs).astype(np.uint32)
        arguments = (groups, group_of_env, options, torch.device("cpu"), 1)
        self.num_envs = num_envs
        self.cpu, self.gpu = (
            Engine(*arguments),
            SimulatedEngine(gpu, *arguments, multiprocessors=multiprocessors),
        )
        self.engines = (self.cpu, self.gpu)
        self.num_actions = min(len(action_numbers(game, options.action_space)) for game in found)
        self.generator = torch.Generator().manual_seed(1)
        self.endings = 0

    def reset(self, mask: torch.Tensor | None = None, seeds: torch.Tensor | None = None) -> None:
        for engine in self.engines:
            engine.reset(mask, seeds)
        # A reset writes traces, too: on the CPU and on a GPU they say the same.
        self.compare("a reset")

    def step(self) -> None:
        shape = self.cpu.tensors["actions"].shape
        actions = torch.randint(self.num_actions, shape, generator=self.generator)
        for engine in self.engines:
            engine.tensors["actions"][:] = actions
            engine.step()
        self.compare("a step")
        self.endings += int((self.cpu.tensors["terminated"] | self.cpu.tensors["truncated"]).sum())

    def part(self, engine: Engine, name: str) -> torch.Tensor:
        if name == "records":
            return engine.contents.records()
        if name == "pictures":
            return engine.contents.pictures(torch.arange(self.num_envs))
        if name == "traces":  # except for the buffer that the entries are in
            return trace_words(engine.tensors[name])[:, :SPARE]
        if name == "boxes":
            return frame_boxes(engine.tensors[name])
        if name == "pooled":
            return engine.contents.pooled(torch.arange(self.num_envs))
        return engine.tensors[name]

    def compare(self, after: str, *left_out: str) -> None:
        # `row_of` may differ: a scanline shares a row only within a piece that one thread draws.
        for name in self.cpu.layout.fields.keys() - {"row_of", *left_out}:
            ours, theirs = (self.part(engine, name) for engine in (self.gpu, self.cpu))
            if not torch.equal(ours, theirs):
                pytest.fail(f"after {after}: {name} differ in rows {differing(ours, theirs)}")


def frame_boxes(rows: torch.Tensor) -> torch.Tensor:
    """Each frame's boxes, and its two numbers of them; what is behind is room to work in."""
    is_box = torch.arange(rows.shape[2]) <= rows[..., 0, :1]
    is_box = is_box.unsqueeze(-1).expand(rows.shape).clone()
    is_box[..., 0, 2:] = False
    return torch.where(is_box, rows, 0)


def differing(ours: torch.Tensor, theirs: torch.Tensor) -> list[int]:
    """Returns the first indices along the first axis at which tensors differ."""
    rows = (ours != theirs).view(len(ours), -1).any(1)
    return torch.nonzero(rows).flatten()[:8].tolist()


def some_options(**changes: Any) -> Options:
    """Makes options with short episodes, so that resets are compared, too."""
    values = {
        "reset_pool_size": 2,
        "noop_max": 4,
        "repeat_action_probability": 0.25,
        "max_frames": 22,
    }
    return Options(**(values | changes))
