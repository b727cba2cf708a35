"""A step drawn in pieces, as in the backends, against one drawn entry by entry.

Also compares the state of the TIA that the CPU part keeps (at the beginning of segments, latches
that are read) with a replay of the same entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
import pytest
import torch

import cule
from cule import _core
from cule.console import Group, Options, action_numbers
from cule.engine import Engine
from cule.rom import find_game, games
from tests.support.traces import earlier_frames_show, leaves_lines

# PAL, 250 lines, collisions read and cleared at all times, long frames, mid-line writes, frames
# that are cut off, frames that are short.
GAMES = (
    "pong", "air_raid", "freeway", "space_invaders", "pitfall2", "robotank", "tic_tac_toe_3d",
    "ms_pacman",
    "journey_escape", "video_checkers",
)  # fmt: skip
STEPS, FULL_BUFFER_STEPS, CUT_OFF_STEPS, GPU_STEPS, CHECKED_STEPS = 60, 120, 500, 15, 15
# The ways in which a step is drawn in pieces.
PIECES = ("segments", "frames", "frames_by_32")
FRAMESKIP, SEGMENTS_AT_LEAST = 4, 9
READING = ("freeway", "pitfall2", "seaquest", "space_invaders", "robotank")


def make_engine(game: str, mode: int | None = None, **kwargs: int) -> Engine:
    found = find_game(game)
    group = Group(found, found.facts["default_mode"] if mode is None else mode, 0)
    options = Options(reset_pool_size=2, repeat_action_probability=0.25, autoreset=2, **kwargs)
    engine = Engine([group], np.zeros(1, np.uint32), options, torch.device("cpu"), 1)
    engine.reset(None, torch.tensor([11]))
    return engine


def play(
    drawing: ModuleType, game: str, steps: int, ways: tuple[str, ...], **options: int
) -> Iterator[tuple[str, list[Engine]]]:
    """Steps an engine for each of the `ways`, with the same actions; yields the number of each
    step."""
    engines = [make_engine(game, **options) for _ in ways]
    generator = torch.Generator().manual_seed(2)
    for number in range(steps):
        action = int(
            torch.randint(len(action_numbers(find_game(game), "minimal")), (), generator=generator)
        )
        for engine, way in zip(engines, ways, strict=True):
            engine.tensors["actions"][:] = action
            drawing.step(engine.batch.address, way)
        yield f"step {number}", engines
        if engines[0].tensors["terminated"][0]:
            for engine in engines:
                engine.reset(torch.ones(1, dtype=torch.uint8), None)


def pictures_of(engine: Engine) -> torch.Tensor:
    return engine.contents.pictures(torch.arange(engine.num_envs))


def same(one: Engine, other: Engine, names: tuple[str, ...], where: str) -> None:
    """Raises AssertionError if pictures or one of the named tensors differ."""
    assert torch.equal(pictures_of(one), pictures_of(other)), f"{where}: pictures differ"
    for name in names:
        assert torch.equal(one.tensors[name], other.tensors[name]), f"{where}: {name} differ"


@pytest.mark.parametrize("game", GAMES)
def test_segments_are_the_whole(game: str, drawing: ModuleType) -> None:
    pictures, shared = set(), [0] * len(PIECES)
    own = torch.arange(_core.PICTURE_ROWS, dtype=torch.uint8).expand(1, 2, -1)
    for number, (whole, *others) in play(drawing, game, STEPS, ("entries", *PIECES)):
        pictures.add(pictures_of(whole).numpy().tobytes())
        assert torch.equal(whole.tensors["row_of"], own)
        for place, pieces in enumerate(others):
            where = f"{number}, {PIECES[place]}"
            same(whole, pieces, ("records", "ram", "traces", "pooled"), where)
            rows = pieces.tensors["row_of"]
            assert bool((rows <= own).all())
            if leaves_lines(pieces.tensors["traces"])[0]:
                assert torch.equal(rows, own), f"{where}: a line that is left shares its row"
            shared[place] += int((rows != own).sum())
    assert len(pictures) > STEPS // 4
    assert min(shared) > STEPS or game == "journey_escape"  # whose frames all end early


@pytest.mark.parametrize("game", GAMES)
def test_more_than_two_frames_are_pooled(game: str, drawing: ModuleType) -> None:
    """All frames are drawn in order, in each line of them alone, and each is pooled at its end."""
    pooled = set()
    ways = ("entries", *PIECES)
    for number, (whole, *others) in play(drawing, game, STEPS, ways, pooled_frames=3, frameskip=5):
        assert whole.keeps_pooled
        pooled.add(whole.tensors["pooled"].numpy().tobytes())
        for place, pieces in enumerate(others):
            same(
                whole, pieces, ("records", "ram", "traces", "pooled"), f"{number}, {PIECES[place]}"
            )
    assert len(pooled) > STEPS // 8


@pytest.mark.parametrize(
    ("game", "mode"),
    [("video_checkers", 19), ("tic_tac_toe_3d", 1), ("othello", 1), ("video_chess", 0)],
)
def test_frames_that_are_cut_off_go_on_where_they_stopped(
    game: str, mode: int, drawing: ModuleType
) -> None:
    """They continue at that color clock: the last write before may take effect after its cycle."""
    ways = ("entries", *PIECES)
    whole, *others = engines = [make_engine(game, mode, frameskip=1) for _ in ways]
    generator = torch.Generator().manual_seed(2)
    for number in range(CUT_OFF_STEPS):
        if number % 5 == 0:
            action = int(torch.randint(9, (), generator=generator))
        for engine, way in zip(engines, ways, strict=True):
            engine.tensors["actions"][:] = action
            drawing.step(engine.batch.address, way)
        for pieces, way in zip(others, PIECES, strict=True):
            same(whole, pieces, ("records", "ram", "traces"), f"step {number}, {way}")


@pytest.mark.parametrize("capacity", [1, 200, 1500])
@pytest.mark.parametrize("way", PIECES)
def test_segments_of_a_buffer_that_was_full_end(
    capacity: int, way: str, drawing: ModuleType
) -> None:
    """Then marks of frames' ends are missing, and frames are drawn in order.

    Only the pictures are wrong.
    """
    whole, pieces = make_engine("tic_tac_toe_3d"), make_engine("tic_tac_toe_3d")
    generator = torch.Generator().manual_seed(2)
    broken = 0
    for _ in range(FULL_BUFFER_STEPS):
        action = int(torch.randint(10, (), generator=generator))
        for engine in (whole, pieces):
            engine.batch.buffer_capacity = capacity
            engine.tensors["actions"][:] = action
            drawing.step(engine.batch.address, way if engine is pieces else "entries")
        for name in ("ram", "traces", "faults"):
            assert torch.equal(whole.tensors[name], pieces.tensors[name]), name
        broken += int(earlier_frames_show(pieces.tensors["traces"])[0])
    assert broken
    assert int(pieces.tensors["faults"][0]) == cule.FAULTS["buffer_full"]


@pytest.mark.parametrize("game", [game.name for game in games()])
def test_steps_of_a_gpu_are_those_of_a_cpu(game: str, drawing: ModuleType) -> None:
    """Compares the interpreter for lanes in step, with its fast path, and segments, for every
    game."""
    ours, theirs = make_engine(game), make_engine(game)
    generator = torch.Generator().manual_seed(3)
    for number in range(GPU_STEPS):
        action = int(
            torch.randint(len(action_numbers(find_game(game), "minimal")), (), generator=generator)
        )
        for engine in (ours, theirs):
            engine.tensors["actions"][:] = action
        ours.step()
        drawing.step(theirs.batch.address, "segments")
        same(ours, theirs, ("ram", "rewards", "faults"), f"step {number}")
        if ours.tensors["terminated"][0]:
            for engine in (ours, theirs):
                engine.reset(torch.ones(1, dtype=torch.uint8), None)


def step_by_step(game: str, step: Callable[[int], int]) -> int:
    """The sum of what `step` returns for an engine's address, over some steps."""
    engine, total = make_engine(game), 0
    generator = torch.Generator().manual_seed(4)
    for _ in range(CHECKED_STEPS):
        actions = len(action_numbers(find_game(game), "minimal"))
        engine.tensors["actions"][:] = int(torch.randint(actions, (), generator=generator))
        total += step(engine.batch.address)
        if engine.tensors["terminated"][0]:
            engine.reset(torch.ones(1, dtype=torch.uint8), None)
    return total


@pytest.mark.parametrize("game", [game.name for game in games()])
def test_segments_begin_as_a_replay_has_them(game: str, drawing: ModuleType) -> None:
    """The state for each segment, and the one after the step, are those of a replay of all
    entries."""
    assert step_by_step(game, drawing.step_checked) > CHECKED_STEPS * FRAMESKIP * SEGMENTS_AT_LEAST


@pytest.mark.parametrize("game", [game.name for game in games()])
def test_latches_read_as_a_replay_has_them(game: str, drawing: ModuleType) -> None:
    reads = step_by_step(game, drawing.step_reading)
    assert reads > 0 or game not in READING


@pytest.mark.parametrize(
    "seeds",
    [range(500), pytest.param(range(500, 1500), marks=pytest.mark.slow)], ids=["some", "others"],
)  # fmt: skip
def test_latches_at_random_as_a_replay_has_them(seeds: range, drawing: ModuleType) -> None:
    """Tries what no game does: accesses to the TIA at all times, and frames that are cut off
    anywhere."""
    engine = make_engine("pong")
    found = [drawing.read_at_random(engine.batch.address, seed) for seed in seeds]
    assert sum(found) > len(seeds) and sum(count == 0 for count in found) < 4 / 15 * len(seeds)
