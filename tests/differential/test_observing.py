"""The CPU's vector code for observations: each level that the processor has, against the same one
pixel at a time, and against OpenCV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import cv2
import numpy as np
import pytest

from cule.facts.palette import grey_palette, rgb_palette
from cule.facts.resample import make_tables
from tests.support.build import CHECKED, build_module

LINE_PIXELS, ROWS, STACK = 160, 256, 3
HEIGHTS = (210, 214, 220, 230, 250)
# The default, sizes that are common, each way to resize, and sizes of one block of columns, of one
# more, of many taps and of one tap.
SIZES = [
    (84, 84), (64, 64), (96, 96), (128, 128), (105, 80), (210, 160), (42, 42), (70, 40), (42, 53),
    (84, 160), (210, 84), (110, 84), (1, 1), (7, 160), (210, 1), (3, 5), (84, 16), (84, 17),
    (210, 80), (30, 32), (209, 159), (211, 160), (210, 161), (256, 256), (84, 300), (500, 3),
    (333, 777),
]  # fmt: skip
LARGEST = pytest.param((512, 512), marks=pytest.mark.slow)
NONE, LAST, LAST_TWO, SHOWN_AND_LAST_BUT_ONE = range(4)  # NewFrame


class Plan(NamedTuple):
    """What is set of an ObservationPlan (csrc/kernels/observe/plan.h)."""

    new_frame: int
    clears_stack: bool = False
    last_two_share_picture: bool = False


PLANS = [
    Plan(LAST_TWO),
    Plan(LAST),
    Plan(LAST, clears_stack=True),
    Plan(NONE),
    Plan(SHOWN_AND_LAST_BUT_ONE),
    Plan(LAST_TWO, last_two_share_picture=True),
    Plan(SHOWN_AND_LAST_BUT_ONE, last_two_share_picture=True),
]


class Pictures(NamedTuple):
    """Envs' pictures as in a batch: (envs, 2, height, 160) uint8 palette indices, and (envs, 2,
    256) uint8 numbers of rows."""

    indices: np.ndarray
    row_of: np.ndarray

    def lines(self, which: int) -> np.ndarray:
        """What a picture shows: (envs, height, 160) uint8 palette indices."""
        height = self.indices.shape[2]
        rows = self.row_of[:, which, :height, None].astype(np.int64)
        return np.take_along_axis(self.indices[:, which], rows, axis=1)


@pytest.fixture(scope="module")
def module(build_folder: Path) -> ModuleType:
    """The compiled module. It is optimized as the core is, so that loops become vector code."""
    source = Path(__file__).with_name("observe_module.cpp")
    flags = [*CHECKED, "-Wno-unknown-pragmas", "-O3"]
    return build_module("observe_module", [source], build_folder, compile_flags=flags)


def made_up_pictures(generator: np.random.Generator, height: int) -> Pictures:
    """Four envs: pixels drawn at random of all 256 indices; few colors in long runs, with rows that
    are shared; the same with pictures that differ in a few rows, and with rows that are equal, or
    equal but for one pixel, and not shared; one color each."""
    indices = generator.integers(0, 256, (4, 2, height, LINE_PIXELS)).astype(np.uint8)
    row_of = np.tile(np.arange(ROWS, dtype=np.uint8), (4, 2, 1))
    for env in (1, 2):
        few = indices[env, :, :, :1] ^ generator.integers(0, 4, (2, height, 20)).astype(np.uint8)
        indices[env] = np.repeat(few, LINE_PIXELS // 20, axis=2)
        for which in range(2):
            for line in range(1, height):
                if generator.random() < 0.4:
                    row_of[env, which, line] = row_of[env, which, line - 1]
    equal = generator.random(height - 1) < 0.5
    for line in np.flatnonzero(equal) + 1:
        indices[2, :, line] = indices[2, :, line - 1]
    same = generator.random(height) < 0.8
    indices[2, 1, same] = indices[2, 0, same]
    row_of[2, 1] = row_of[2, 0]
    for line in np.flatnonzero(generator.random(height) < 0.3):
        indices[2, generator.integers(2), line, generator.integers(LINE_PIXELS)] ^= 0x7E
    indices[3, 0], indices[3, 1] = generator.integers(0, 256, 2)
    return Pictures(indices, row_of)


class Observed(NamedTuple):
    """(4, STACK, height, width, channels) observations, and (4, picture height, 160, channels)
    pooled frames."""

    observations: np.ndarray
    pooled: np.ndarray


def observe(
    module: ModuleType,
    level: str,
    plan: Plan,
    pictures: Pictures,
    size: tuple[int, int],
    grey: bool,
) -> Observed:
    """Observations at a level of vector code or by "pixels". Stacks and pooled frames hold random
    bytes before."""
    channels = 1 if grey else 3
    height = pictures.indices.shape[2]
    tables = make_tables(height, LINE_PIXELS, *size)
    generator = np.random.default_rng(7)
    observations = generator.integers(0, 256, (4, STACK, *size, channels)).astype(np.uint8)
    pooled = generator.integers(0, 256, (4, height, LINE_PIXELS, channels)).astype(np.uint8)
    palette = grey_palette(False) if grey else rgb_palette(False)
    module.observe(
        level, module.plan_bits(*plan), *pictures, pooled, observations,
        np.concatenate([palette, palette]), tables.kind, tables.rows, tables.columns,
        tables.weights, tables.scale,
    )  # fmt: skip
    return Observed(observations, pooled)


def assert_levels_agree(
    module: ModuleType, plan: Plan, pictures: Pictures, size: tuple[int, int], grey: bool
) -> Observed:
    """Compares the levels; returns what is observed."""
    expected = observe(module, "pixels", plan, pictures, size, grey)
    for level in module.levels():
        seen = observe(module, level, plan, pictures, size, grey)
        for name, ours, theirs in zip(Observed._fields, seen, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{name}, {level}, {size}, {plan}")
    return expected


def resized(pictures: Pictures, plan: Plan, size: tuple[int, int], grey: bool) -> np.ndarray:
    """What OpenCV makes of the pictures: (4, height, width, channels) uint8."""
    palette = grey_palette(False) if grey else rgb_palette(False)
    front = palette[pictures.lines(0)]
    pooled = front if plan.new_frame == LAST else np.maximum(front, palette[pictures.lines(1)])
    frames = [cv2.resize(frame, size[::-1], interpolation=cv2.INTER_AREA) for frame in pooled]
    return np.stack(frames).reshape(len(pooled), *size, -1)


def sizes_at_random() -> Iterator[tuple[int, int]]:
    for height, width in np.random.default_rng(0).integers(1, 300, (12, 2)):
        yield int(height), int(width)


def test_levels_are_those_of_the_processor(module: ModuleType) -> None:
    levels = module.levels()
    assert levels[-1] == "plain"
    assert module.best_level() == levels[0]
    with pytest.raises(ValueError, match="expected a level that this processor has, got fastest"):
        observe(module, "fastest", PLANS[0], made_up_pictures(np.random.default_rng(0), 210),
                (84, 84), True)  # fmt: skip


@pytest.mark.parametrize("grey", [True, False], ids=["grey", "rgb"])
@pytest.mark.parametrize("size", [*SIZES, *sizes_at_random(), LARGEST], ids=str)
def test_levels_agree_with_pixels_and_with_opencv(
    module: ModuleType, size: tuple[int, int], grey: bool
) -> None:
    generator = np.random.default_rng(size)
    for height in (HEIGHTS[0], int(generator.choice(HEIGHTS[1:]))):
        for plan in PLANS[:2]:
            pictures = made_up_pictures(generator, height)
            observations = assert_levels_agree(module, plan, pictures, size, grey).observations
            np.testing.assert_array_equal(observations[:, -1], resized(pictures, plan, size, grey))


@pytest.mark.parametrize("grey", [True, False], ids=["grey", "rgb"])
@pytest.mark.parametrize("size", [(84, 84), (64, 64), (210, 160), (96, 161)], ids=str)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_levels_agree_with_pixels_in_every_plan(
    module: ModuleType, plan: Plan, size: tuple[int, int], grey: bool
) -> None:
    before = observe(
        module, "pixels", Plan(NONE), made_up_pictures(np.random.default_rng(1), 210), size, grey
    )
    pictures = made_up_pictures(np.random.default_rng(1), 210)
    after = assert_levels_agree(module, plan, pictures, size, grey)
    pools = plan.new_frame != NONE and (
        plan.last_two_share_picture or plan.new_frame == SHOWN_AND_LAST_BUT_ONE
    )
    unchanged = plan == Plan(SHOWN_AND_LAST_BUT_ONE, last_two_share_picture=True)
    assert np.array_equal(before.pooled, after.pooled) == (not pools or unchanged)
    assert (after.observations[:, :-1] == 0).all() == plan.clears_stack
