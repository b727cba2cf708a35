"""The demo's picture and its mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import cv2
import numpy as np
import pytest
import torch

import cule
from cule import demo
from cule.env.screens import BACKGROUND, MARGIN, TITLE_HEIGHT, mosaic

SHORT = ["--num-envs", "2", "--steps", "3", "--device", "cpu", "--quiet"]


def test_demo_writes_a_picture_of_the_right_shape_and_colors(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = tmp_path / "picture.png"
    # Five games make two rows; air_raid's PAL picture has 250 lines.
    games = ["pong", "breakout", "ms_pacman", "air_raid", "freeway"]
    assert demo.main([*games, *SHORT, "--output", str(path)]) == 0
    picture = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    tile_height = 250 + TITLE_HEIGHT
    assert picture.shape == (2 * (tile_height + MARGIN) + MARGIN, 4 * (320 + MARGIN) + MARGIN, 3)
    # Pong's field is brown, which red and blue exchanged would not be.
    top, left = MARGIN + TITLE_HEIGHT, MARGIN
    assert tuple(picture[top + 60, left + 4]) == (144, 72, 17)
    printed = capsys.readouterr().out
    assert all(game in printed for game in games)
    assert f"The screens are in {path}." in printed


@pytest.mark.parametrize(("suffix", "begin"), [
    (".png", b"\x89PNG"), (".jpg", b"\xff\xd8\xff"), (".JPEG", b"\xff\xd8\xff"), (".webp", b"RIFF"),
    (".bmp", b"BM"), (".tiff", b"II*"),
])  # fmt: skip
def test_demo_writes_what_the_suffix_says(suffix: str, begin: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"picture{suffix}"
    assert demo.main(["pong", *SHORT, "--output", str(path)]) == 0
    assert path.read_bytes().startswith(begin)
    assert cv2.imread(str(path)).shape == (210 + TITLE_HEIGHT + 2 * MARGIN, 320 + 2 * MARGIN, 3)


def test_mosaic_shows_each_screen_in_its_place() -> None:
    """One screen is higher, and its row is as high as that one."""
    heights = (210, 250, 210)
    screens = [np.full((height, 160, 3), 50 + i, np.uint8) for i, height in enumerate(heights)]
    picture = mosaic(screens, ["a", "b", "c"], columns=3)
    assert picture.shape == (250 + TITLE_HEIGHT + 2 * MARGIN, 3 * 320 + 4 * MARGIN, 3)
    for i, screen in enumerate(screens):
        x, y = MARGIN + i * (320 + MARGIN), MARGIN + TITLE_HEIGHT
        assert (picture[y : y + len(screen), x : x + 320] == screen[0, 0]).all()
        assert (picture[y + len(screen) :, x : x + 320] == BACKGROUND).all()
    bare = mosaic(screens)
    assert bare.shape == (500, 640, 3) and not bare[250:, 320:].any()
    assert (bare[:250, 320:] == 51).all()


def test_demo_games_are_games() -> None:
    assert set(demo.GAMES) <= {game.name for game in cule.games()}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pnog"], "got 'pnog'; closest: 'pong'"),
        (
            ["pong", "--steps", "0"],
            "argument --steps: expected a whole number of at least 1, got '0'",
        ),
        (
            ["pong", "--num-envs", "0"],
            "argument --num-envs: expected a whole number of at least 1, got '0'",
        ),
        (
            ["pong", "--num-envs", "x"],
            "argument --num-envs: expected a whole number of at least 1, got 'x'",
        ),
        (["pong", "--device", "tpu"], "got 'tpu'"),
        (
            ["pong", "--steps", "1", "--num-envs", "1", "--output", f"{__file__}/demo.png"],
            "--output",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_demo_says_in_one_sentence_what_is_wrong(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture
) -> None:
    try:
        status = demo.main([*arguments, "--quiet"])
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.startswith("cule.demo: ") and error.count("\n") == 1


def test_demo_tries_the_output_before_it_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def play(*_: Any) -> Any:
        raise AssertionError("a game was played")

    monkeypatch.setattr(demo, "play", play)
    (tmp_path / "folder.png").mkdir()
    for path in (tmp_path / "folder.png", tmp_path / "nowhere" / "demo.png"):
        assert demo.main(["pong", *SHORT, "--output", str(path)]) == 2
        assert (
            f"expected --output to name a file that can be written, got {path}: "
            in capsys.readouterr().err
        )
    for name in ("demo.xyz", "demo", ".png"):
        assert demo.main(["pong", *SHORT, "--output", name]) == 2
        sentence = f"to end in one of .png, .jpg, .jpeg, .webp, .bmp, .tiff, got {name}\n"
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problem", "status", "line"),
    [
        (
            torch.OutOfMemoryError("expected room for 1000000 envs\nand more"),
            2,
            "expected room for 1000000 envs",
        ),
        (RuntimeError("expected to start 9 threads"), 2, "expected to start 9 threads"),
        (MemoryError(), 2, "MemoryError"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_demo_answers_what_the_machine_refuses_with_a_line(
    problem: BaseException, status: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:  # fmt: skip
    """A picture that was there before stays as it is."""
    monkeypatch.setattr(demo, "play", Mock(side_effect=problem))
    (tmp_path / "old.png").write_bytes(b"an older picture")
    for name in ("old.png", "new.png"):
        assert demo.main(["pong", *SHORT, "--output", str(tmp_path / name)]) == status
        assert capsys.readouterr().err == f"cule.demo: {line}\n"
    assert (tmp_path / "old.png").read_bytes() == b"an older picture"
    assert not (tmp_path / "new.png").exists()
