"""The demo's picture and its mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch

import cule
from cule import demo

SHORT = ["--num-envs", "2", "--steps", "3", "--device", "cpu", "--quiet"]


def test_demo_writes_a_picture_of_the_right_shape_and_colors(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "picture.png"
    # Five games make two rows; air_raid's PAL picture has 250 lines.
    games = ["pong", "breakout", "ms_pacman", "air_raid", "freeway"]
    assert demo.main([*games, *SHORT, "--output", str(path)]) == 0
    picture = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    tile_height = 250 + demo.TITLE_HEIGHT
    assert picture.shape == (2 * (tile_height + demo.MARGIN) + demo.MARGIN, 4 * (320 + demo.MARGIN) + demo.MARGIN, 3)
    # Pong's field is brown, which red and blue exchanged would not be.
    top, left = demo.MARGIN + demo.TITLE_HEIGHT, demo.MARGIN
    assert tuple(picture[top + 60, left + 4]) == (144, 72, 17)
    printed = capsys.readouterr().out
    assert all(game in printed for game in games)
    assert f"The screens are in {path}." in printed


def test_demo_mosaic_shows_each_screen_in_its_place() -> None:
    screens = [np.full((210, 160, 3), 50 + i, dtype=np.uint8) for i in range(3)]
    picture = demo.mosaic(["a", "b", "c"], screens)
    for i, screen in enumerate(screens):
        x = demo.MARGIN + i * (demo.TILE_WIDTH + demo.MARGIN)
        y = demo.MARGIN + demo.TITLE_HEIGHT
        assert (picture[y : y + 210, x : x + demo.TILE_WIDTH] == screen[0, 0]).all()


def test_demo_games_are_games() -> None:
    assert set(demo.GAMES) <= {game.name for game in cule.games()}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pnog"], "got 'pnog'; the closest are 'pong'"),
        (["pong", "--steps", "0"], "argument --steps: expected a whole number of at least 1, got '0'"),
        (["pong", "--num-envs", "0"], "argument --num-envs: expected a whole number of at least 1, got '0'"),
        (["pong", "--num-envs", "x"], "argument --num-envs: expected a whole number of at least 1, got 'x'"),
        (["pong", "--device", "tpu"], "got 'tpu'"),
        (["pong", "--steps", "1", "--num-envs", "1", "--output", "/dev/null/demo.png"], "--output"),
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
    for path in (tmp_path, tmp_path / "nowhere" / "demo.png"):
        assert demo.main(["pong", *SHORT, "--output", str(path)]) == 2
        assert f"expected --output to name a file that can be written, got {path}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problem", "status", "line"),
    [
        (torch.OutOfMemoryError("expected room for 1000000 envs\nand more"), 2, "expected room for 1000000 envs"),
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
    """And leaves an older picture as it is."""

    def play(*_: Any) -> Any:
        raise problem

    monkeypatch.setattr(demo, "play", play)
    (tmp_path / "old.png").write_bytes(b"an older picture")
    for name in ("old.png", "new.png"):
        assert demo.main(["pong", *SHORT, "--output", str(tmp_path / name)]) == status
        assert capsys.readouterr().err == f"cule.demo: {line}\n"
    assert (tmp_path / "old.png").read_bytes() == b"an older picture"
    assert not (tmp_path / "new.png").exists()
