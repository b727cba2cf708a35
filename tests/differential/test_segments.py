"""A step as a GPU does it, on the CPU: drawn in segments against drawn whole, and all of it against the CPU's own."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch
from compiled import compile_module

import cule
from cule.console import Group, Options, action_numbers
from cule.engine import Engine
from cule.rom import find_game, games

# PAL, 250 lines, collisions read and cleared at all times, long frames, mid-line writes, frames that are cut off,
# frames that are short.
GAMES = (
    "pong", "air_raid", "freeway", "space_invaders", "pitfall2", "robotank", "tic_tac_toe_3d", "ms_pacman",
    "journey_escape", "video_checkers",
)  # fmt: skip
STEPS = 120
# Of a StepTrace (csrc/kernels/batch.h): the place of its flags, and one of them.
FLAGS, PICTURE_BROKEN = 3, 1


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return compile_module("segments_module.cpp", "segments_module", tmp_path_factory.mktemp("segments"))


def make_engine(game: str) -> Engine:
    found = find_game(game)
    group = Group(found, found.facts["default_mode"], 0)
    options = Options(reset_pool_size=2, repeat_action_probability=0.25, autoreset=2)
    engine = Engine([group], np.zeros(1, np.uint32), options, torch.device("cpu"), 1)
    engine.reset(None, torch.tensor([11]))
    return engine


@pytest.mark.parametrize("game", GAMES)
def test_segments_are_the_whole(game: str, segments: ModuleType) -> None:
    whole, pieces = make_engine(game), make_engine(game)
    generator = torch.Generator().manual_seed(2)
    pictures = set()
    for number in range(STEPS):
        action = int(torch.randint(len(action_numbers(find_game(game), "minimal")), (), generator=generator))
        for engine in (whole, pieces):
            engine.tensors["actions"][:] = action
            segments.step(engine.batch.address, engine is pieces)
        for name in ("pictures", "records", "ram", "traces", "pooled"):
            assert torch.equal(whole.tensors[name], pieces.tensors[name]), f"step {number}: {name} differ"
        pictures.add(whole.tensors["pictures"].numpy().tobytes())
        if whole.tensors["terminated"][0]:
            for engine in (whole, pieces):
                engine.reset(torch.ones(1, dtype=torch.uint8), None)
    assert len(pictures) > STEPS // 4


@pytest.mark.parametrize("capacity", [1, 200, 1500])
def test_segments_of_a_buffer_that_was_full_end(capacity: int, segments: ModuleType) -> None:
    """Where the marks of frames' ends are missing, and order matters. Pictures are wrong then, and nothing else is."""
    whole, pieces = make_engine("tic_tac_toe_3d"), make_engine("tic_tac_toe_3d")
    generator = torch.Generator().manual_seed(2)
    broken = 0
    for _ in range(STEPS):
        action = int(torch.randint(10, (), generator=generator))
        for engine in (whole, pieces):
            engine.batch.buffer_capacity = capacity
            engine.tensors["actions"][:] = action
            segments.step(engine.batch.address, engine is pieces)
        for name in ("ram", "traces", "faults"):
            assert torch.equal(whole.tensors[name], pieces.tensors[name]), name
        broken += int(pieces.tensors["traces"].view(torch.int32)[0, FLAGS]) & PICTURE_BROKEN
    assert broken
    assert int(pieces.tensors["faults"][0]) == cule.FAULTS["buffer_full"]


@pytest.mark.parametrize("game", [game.name for game in games()])
def test_steps_of_a_gpu_are_those_of_a_cpu(game: str, segments: ModuleType) -> None:
    """The interpreter for lanes in step with its short common path, and segments, for every game."""
    ours, theirs = make_engine(game), make_engine(game)
    generator = torch.Generator().manual_seed(3)
    for number in range(30):
        action = int(torch.randint(len(action_numbers(find_game(game), "minimal")), (), generator=generator))
        for engine in (ours, theirs):
            engine.tensors["actions"][:] = action
        ours.step()
        segments.step(theirs.batch.address, True)
        for name in ("ram", "pictures", "rewards", "faults"):
            assert torch.equal(ours.tensors[name], theirs.tensors[name]), f"step {number}: {name} differ"
        if ours.tensors["terminated"][0]:
            for engine in (ours, theirs):
                engine.reset(torch.ones(1, dtype=torch.uint8), None)
