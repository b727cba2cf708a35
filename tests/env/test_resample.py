"""The area resize against OpenCV's: its tables, and observations made with them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch

import cule
from cule.facts.palette import grey_palette
from cule.facts.resample import AREA, AREA_INTEGER, COPY, LARGEST, LINEAR, Tables, make_tables

SIZES = [
    (84, 84), (64, 64), (105, 80), (210, 160), (100, 120), (70, 40), (42, 53), (209, 159),
    (210, 84), (84, 160), (1, 1),
    (7, 160), (210, 1), (96, 96), (128, 128), (3, 5), (110, 84),
]  # fmt: skip
# One or both axes are longer than the picture's. INTER_AREA then uses another method.
LARGER_SIZES = [
    (211, 160), (210, 161), (420, 320), (256, 256), (84, 300), (500, 3), (512, 512), (333, 777),
    (1000, 84), (229, 171),
]  # fmt: skip
# Picture heights and observation heights that divide them, though OpenCV's scale, 1 / (2 / 210), is
# no whole number.
NEARLY_WHOLE = {(210, 1), (210, 2), (214, 1), (214, 2)}
DIVISORS = [width for width in range(1, 161) if 160 % width == 0]
# One game for each height of a picture, the last one PAL's.
GAME_OF_HEIGHT = {
    210: "ms_pacman",
    214: "carnival",
    220: "pooyan",
    230: "journey_escape",
    250: "adventure",
}


def resize(picture: np.ndarray, tables: Tables) -> np.ndarray:
    """Resizes a (height, width) picture as the tables say, slowly, in double precision."""
    if tables.kind == COPY:
        return picture.astype(np.float64)

    def matrix(spans: np.ndarray, length: int) -> np.ndarray:
        out = np.zeros((len(spans), length))
        for row, (first, count, weight) in zip(out, spans, strict=True):
            whole = tables.kind == AREA_INTEGER
            row[first : first + count] = (
                1.0 / count if whole else tables.weights[weight : weight + count]
            )
        return out

    return (
        matrix(tables.rows, picture.shape[0]) @ picture @ matrix(tables.columns, picture.shape[1]).T
    )


@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize("source", [210, 214, 220, 230, 250])
def test_tables_cover_the_picture_once(source: int, height: int, width: int) -> None:
    tables = make_tables(source, 160, height, width)
    if tables.kind == COPY:
        assert (height, width) == (source, 160)
        return
    whole = source % height == 0 and 160 % width == 0 and (source, height) not in NEARLY_WHOLE
    assert (tables.kind == AREA_INTEGER) == whole
    for spans, length, target in ((tables.rows, source, height), (tables.columns, 160, width)):
        assert spans.shape == (target, 3)
        assert spans.dtype == np.int32
        assert spans[0, 0] == 0
        assert (spans[:, 0] >= 0).all()
        assert (spans[:, 0] + spans[:, 1] <= length).all()
        assert spans[-1, 0] + spans[-1, 1] == length
        if tables.kind == AREA:
            shares = np.zeros(length)
            for first, count, weight in spans:
                part = tables.weights[weight : weight + count]
                assert abs(part.sum() - 1) < 2e-3
                shares[first : first + count] += part
            np.testing.assert_allclose(shares, target / length, atol=2e-3)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_tables_resize_as_opencv_but_for_rounding(height: int, width: int) -> None:
    picture = np.random.default_rng(0).integers(0, 256, size=(210, 160)).astype(np.uint8)
    theirs = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
    ours = resize(picture, make_tables(210, 160, height, width))
    assert np.abs(ours - theirs.reshape(height, width)).max() <= 0.51


@pytest.mark.parametrize(("height", "width"), LARGER_SIZES)
def test_tables_interpolate_as_opencv(height: int, width: int) -> None:
    """Applies the kernels' formula to the integers of the tables."""
    picture = np.random.default_rng(0).integers(0, 256, size=(210, 160)).astype(np.uint8)
    tables = make_tables(210, 160, height, width)
    assert tables.kind == LINEAR

    def both(spans: np.ndarray, lines: np.ndarray, combine: Any) -> np.ndarray:
        out = []
        for first, count, weight in spans:
            parts = [
                combine(int(tables.weights[weight + i]), lines[first + i]) for i in range(count)
            ]
            out.append(sum(parts))
        return np.stack(out)

    sums = both(tables.columns, picture.T.astype(np.int64), lambda weight, line: weight * line).T
    ours = both(tables.rows, sums, lambda weight, line: weight * (line >> 4) >> 16) + 2 >> 2
    theirs = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(ours, theirs)


def test_tables_have_a_largest_size() -> None:
    for height, width in ((LARGEST + 1, 160), (210, LARGEST + 1)):
        with pytest.raises(
            ValueError, match="expected observations of at most 4096 x 4096 pixels, got img_height"
        ):
            make_tables(210, 160, height, width)


@pytest.mark.parametrize(("height", "width"), SIZES + LARGER_SIZES)
@pytest.mark.parametrize("grayscale", [True, False])
def test_observation_is_opencv_resize_of_the_maximum_of_two_frames(
    height: int, width: int, grayscale: bool, device: str
) -> None:
    """A second env, which plays frame by frame, shows the frames of which the first one's
    observation is made."""
    options = {
        "device": device, "reset_pool_size": 1, "num_threads": 1, "stack_num": 1, "output": "numpy",
        "grayscale": grayscale,
    }  # fmt: skip
    env = cule.AtariEnv("ms_pacman", img_height=height, img_width=width, **options)
    single = cule.AtariEnv("ms_pacman", frameskip=1, **options)
    for one in (env, single):
        one.reset(seed=0)
    rng = np.random.default_rng(0)
    look = single.get_screen_grayscale if grayscale else single.get_screen_rgb
    for _ in range(8):
        action = rng.integers(env.single_action_space.n, size=1)
        frames = []
        for _ in range(4):
            single.step(action)
            frames.append(look()[0])
        expected = cv2.resize(
            np.maximum(frames[2], frames[3]), (width, height), interpolation=cv2.INTER_AREA
        )
        observation = env.step(action)[0][0, 0]
        np.testing.assert_array_equal(observation, expected.reshape(observation.shape))


def made_up_pictures(count: int, source: int, height: int, width: int, pal: bool) -> np.ndarray:
    """(count, source, 160) uint8 palette indices: half of the pictures are random, half have
    means that end in .5. In the latter, the pixels under one pixel of the observation are two
    adjacent greys, equally many of each."""
    rng = np.random.default_rng(0)
    pictures = 2 * rng.integers(0, 128, size=(count, source, 160)).astype(np.uint8)
    index_of = {int(grey): 2 * i for i, grey in enumerate(grey_palette(pal).flat[::2])}
    steps = [(index_of[grey], index_of[grey + 1]) for grey in index_of if grey + 1 in index_of]
    rows, columns = max(source // height, 1), max(160 // width, 1)
    for picture in pictures[::2]:
        lower, upper = steps[rng.integers(len(steps))]
        block = np.full(rows * columns, lower, np.uint8)
        block[: rows * columns // 2] = upper
        block = rng.permutation(block).reshape(rows, columns)
        picture[:] = np.tile(block, (-(-source // rows), -(-160 // columns)))[:source, :160]
    return pictures


def assert_resets_show_opencv_resize(source: int, height: int, width: int, device: str) -> None:
    """Puts made-up pictures into the start states, and compares the observations of resets."""
    env = cule.AtariEnv(
        GAME_OF_HEIGHT[source], 24, device, num_threads=1, stack_num=1, img_height=height,
        img_width=width,
        reset_pool_size=8, output="numpy",
    )  # fmt: skip
    pictures = made_up_pictures(8, source, height, width, env.engine.boots[0].pal)
    both = torch.from_numpy(np.stack([pictures, pictures], axis=1))
    env.engine.tensors["pool_pictures"].copy_(
        both.reshape(env.engine.tensors["pool_pictures"].shape)
    )
    observations = env.reset(seed=0)[0][:, 0]
    for screen, observation in zip(env.get_screen_grayscale(), observations, strict=True):
        expected = cv2.resize(screen, (width, height), interpolation=cv2.INTER_AREA).reshape(
            height, width
        )
        np.testing.assert_array_equal(
            observation, expected, err_msg=f"{source} to {height} x {width}"
        )


def test_resize_rounds_as_opencv_where_its_scale_is_nearly_whole(device: str) -> None:
    for source, height in NEARLY_WHOLE:
        for width in DIVISORS:
            assert_resets_show_opencv_resize(source, height, width, device)


@pytest.mark.slow
@pytest.mark.parametrize("source", GAME_OF_HEIGHT)
def test_resize_rounds_as_opencv_to_sizes_drawn_at_random(source: int, device: str) -> None:
    for height, width in np.random.default_rng(source).integers(1, 421, size=(200, 2)):
        assert_resets_show_opencv_resize(source, int(height), int(width), device)


@pytest.mark.slow
@pytest.mark.parametrize("source", GAME_OF_HEIGHT)
def test_resize_rounds_as_opencv_to_every_size_of_whole_blocks(source: int, device: str) -> None:
    for height in (height for height in range(1, source + 1) if source % height == 0):
        for width in DIVISORS:
            assert_resets_show_opencv_resize(source, height, width, device)
