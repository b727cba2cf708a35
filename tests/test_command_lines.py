"""`python -m cule.play` and `cule.record`: what they do, and their messages about a user's
mistakes."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import imageio
import numpy as np
import pygame
import pytest
import torch

import cule
from cule import __main__ as overview
from cule import play, record
from cule.env.screens import mosaic
from cule.programs import command_line
from cule.programs.command_line import Parser, exit_status_of
from cule.train import __main__ as trainings
from tests.support import warm

ROOT = Path(__file__).resolve().parents[1]
SHORT = ["--seconds", "0.3", "--quiet"]


@pytest.fixture
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)


def test_record_films_games_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "video.gif"
    assert (
        record.main(
            ["pong", "freeway", "--num-envs", "3", *SHORT, "--output", str(path), "--device", "cpu"]
        )
        == 0
    )
    frames = imageio.mimread(path)
    assert capsys.readouterr().out == f"The video is in {path}.\n"
    env = cule.AtariEnv(["pong", "freeway"], 3, device="cpu")
    env.reset(seed=0)
    titles = ["pong 0", "pong 1", "freeway"]
    np.testing.assert_array_equal(frames[0], mosaic(env.get_screen_rgb().numpy(), titles))


def test_record_shows_its_progress(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert (
        record.main(
            ["pong", "--seconds", "0.2", "--output", str(tmp_path / "video.mp4"), "--device", "cpu"]
        )
        == 0
    )
    assert "6/6" in capsys.readouterr().err


def test_play_records_where_there_is_no_display(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, no_display: None
) -> None:
    monkeypatch.chdir(tmp_path)
    assert play.main(["breakout", *SHORT, "--mode", "4"]) == 0
    assert (tmp_path / "breakout.mp4").stat().st_size > 500
    assert "There is no display here" in capsys.readouterr().out


class Keyboard:
    """Keys that are held down, and events that come at given frames."""

    def __init__(self, held: set[int], events: dict[int, list[pygame.event.Event]]):
        self.held, self.events, self.frame = held, events, -1

    def get(self) -> list[pygame.event.Event]:
        self.frame += 1
        return self.events.get(self.frame, [])

    def get_pressed(self) -> Keyboard:
        return self

    def __getitem__(self, key: int) -> bool:
        return key in self.held


def test_play_listens_to_the_keyboard(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """In a window of SDL's dummy display, FIRE starts the ball, RIGHT moves the paddle, and Esc
    ends. The keys are printed first, and the score last."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(play, "INVISIBLE_DRIVERS", ())
    escape = pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE)
    again = pygame.event.Event(pygame.KEYDOWN, key=pygame.K_r)
    keyboard = Keyboard({pygame.K_RIGHT, pygame.K_SPACE}, {40: [again], 90: [escape]})
    monkeypatch.setattr(pygame.event, "get", keyboard.get)
    monkeypatch.setattr(pygame.key, "get_pressed", keyboard.get_pressed)
    shown: list[np.ndarray] = []
    monkeypatch.setattr(
        pygame.display,
        "flip",
        lambda: shown.append(pygame.surfarray.array3d(pygame.display.get_surface())),
    )
    assert play.main(["breakout", "--scale", "1", "--speed", "50", "--mute"]) == 0
    assert len(shown) == 90
    assert shown[0].shape == (320, 210, 3)
    paddle = (200, 72, 72)
    rows = [np.flatnonzero((picture[:, 191] == paddle).all(1)) for picture in (shown[0], shown[39])]
    assert rows[1].mean() > rows[0].mean() + 50
    keys, restarted, stopped = capsys.readouterr().out.splitlines()
    assert keys == "Arrow keys move, space fires, R restarts, Esc quits."
    assert keys in play.make_parser().format_help().replace("\n", " ")
    assert re.fullmatch(r"Restarted at \d+ points\.", restarted)
    assert re.fullmatch(r"Stopped at \d+ points\.", stopped)


@pytest.mark.parametrize(("variable", "value", "reason"), [
    ("DISPLAY", ":7777", "No window can be seen here (DISPLAY=:7777: SDL's video driver is "),
    ("SDL_VIDEODRIVER", "dummy", "No window can be seen here (SDL_VIDEODRIVER=dummy: SDL's video "),
    ("SDL_VIDEODRIVER", "no-such-driver", "The display takes no window ("),
])  # fmt: skip
def test_play_records_where_the_display_shows_no_window(
    variable: str,
    value: str,
    reason: str,
    tmp_path: Path,
    no_display: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It runs in a process, as SDL looks for a display only once, and as a window would stay
    open forever."""
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = warm.run(["-m", "cule.play", "pong", *SHORT], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(reason)
    assert done.stdout.splitlines()[0].endswith(": recording a video of random play instead.")
    assert (tmp_path / "pong.mp4").stat().st_size > 500


@pytest.mark.parametrize("game", ["breakout", "skiing"])
def test_keys_mean_actions(game: str) -> None:
    offered = cule.AtariEnv(
        game, 1, device="cpu", full_action_space=True, reset_pool_size=1
    ).action_meanings
    for held, name in (
        (set(), "NOOP"), ({pygame.K_UP, pygame.K_LEFT}, "UPLEFT"),
        ({pygame.K_LEFT, pygame.K_RIGHT}, "NOOP"),
        ({pygame.K_DOWN, pygame.K_SPACE}, "DOWNFIRE" if game == "breakout" else "DOWN"),
    ):  # fmt: skip
        assert offered[play.action_of_keys(Keyboard(held, {}), pygame, offered)] == name


MISTAKES: list[tuple[str, list[str], str]] = [
    ("record", ["pnog"], "got 'pnog'; closest: 'pong'"),
    ("record", [], "the following arguments are required: GAME"),
    ("record", ["pong", "--seconds", "0"], "expected a number above 0, got '0'"),
    ("record", ["pong", "--num-envs", "x"], "expected a whole number of at least 1, got 'x'"),
    (
        "record",
        ["pong", "breakout", "--num-envs", "1"],
        "expected num_envs to be at least the number of games (2), got 1",
    ),
    ("record", ["pong", "--mode", "7"], "expected a mode of 'pong' (0, 1), got 7"),
    ("record", ["pong", "--output", "video.avi"], "to end in .mp4 or .gif, got 'video.avi'"),
    (
        "record",
        ["pong", "--output", "/nowhere/video.mp4"],
        "a video file that can be written, got /nowhere/video.mp4",
    ),
    ("record", ["pong", "--device", "tpu"], "got 'tpu'"),
    ("record", ["pong", "--speed", "3"], "unrecognized arguments: --speed 3"),
    ("play", ["pnog"], "got 'pnog'; closest: 'pong'"),
    ("play", ["pong", "--scale", "0"], "expected a whole number of at least 1, got '0'"),
    ("play", ["pong", "--difficulty", "9"], "expected a difficulty of 'pong' (0, 1, 2, 3), got 9"),
    ("play", ["pong", "--output", "video.avi"], "to end in .mp4 or .gif, got 'video.avi'"),
]


@pytest.mark.parametrize(
    ("program", "arguments", "sentence"), MISTAKES, ids=lambda value: str(value)[:40]
)
def test_mistakes_are_answered_with_a_sentence(
    program: str,
    arguments: Sequence[str],
    sentence: str,
    capsys: pytest.CaptureFixture,
    no_display: None,
) -> None:
    main = {"play": play.main, "record": record.main}[program]
    try:
        status = main([*arguments, "--quiet"])
    except SystemExit as stop:
        status = stop.code
    error = capsys.readouterr().err
    assert status == 2
    assert sentence in error
    assert error.startswith(f"cule.{program}: ") and error.count("\n") == 1


@pytest.mark.parametrize("program", ["bench", "demo", "play", "record"])
@pytest.mark.parametrize(
    ("problem", "status", "line"),
    [
        (RuntimeError("expected to start 9 threads\nand more"), 2, "expected to start 9 threads"),
        (torch.OutOfMemoryError("no room"), 2, "no room"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=["threads", "memory", "interrupt"],
)
def test_what_the_machine_refuses_is_a_line(
    program: str, problem: BaseException, status: int, line: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:  # fmt: skip
    module = importlib.import_module(
        "cule.bench.__main__" if program == "bench" else f"cule.{program}"
    )
    monkeypatch.setattr(module, "run", Mock(side_effect=problem))
    assert module.main(["pong"]) == status
    error = capsys.readouterr().err
    assert error.startswith(f"cule.{program}: {line}") and error.count("\n") == 1


def test_interrupted_video_has_the_frames_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        yield from range(3)
        raise KeyboardInterrupt

    monkeypatch.setattr(record, "tqdm", interrupt)
    path = tmp_path / "video.mp4"
    assert record.main(["pong", *SHORT, "--output", str(path), "--device", "cpu"]) == 130
    assert imageio.get_reader(path).count_frames() == 4


def test_cule_lists_its_programs_and_versions(capsys: pytest.CaptureFixture) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        assert overview.main(arguments) == 0
        printed = capsys.readouterr().out.splitlines()
        assert printed[0].startswith(f"cule {cule.__version__}, Python 3.")
        assert f"torch {torch.__version__}" in printed[0]
        assert [line.split()[0] for line in printed[4:]] == list(overview.PROGRAMS)
        assert all(len(line) <= 100 for line in printed[1:])
    assert overview.main(["--version"]) == 0
    assert capsys.readouterr().out == f"{printed[0]}\n"


def test_cule_lists_every_program() -> None:
    """Each module of the package that is one, but for those that cule itself starts."""
    folder = Path(cule.__file__).parent
    programs = {path for path in folder.rglob("*.py") if "sys.exit(main())" in path.read_text()}
    programs -= {folder / "__main__.py", folder / "train" / "mps.py"}
    modules = [module for module, _ in overview.PROGRAMS.values()]
    assert {Path(importlib.import_module(module).__file__) for module in modules} == programs


def test_cule_train_says_what_there_is(capsys: pytest.CaptureFixture) -> None:
    """Programs that train, those around them, and where to read how to write one."""
    assert overview.main(["train"]) == trainings.main(["--help"]) == 0
    first, again = capsys.readouterr().out.split("To train")[1:]
    assert first == again
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "examples").glob("*/*.py")
        if "return train.main(" in path.read_text()
    }
    assert modules == set(trainings.ALGORITHMS) and all(f"  {name} " in first for name in modules)
    for name in ("evaluate", "watch", "plot", "sweep", "tune"):
        assert f"\n  {name} " in first
    assert trainings.main(["evalute"]) == 2
    assert capsys.readouterr().err.endswith("got 'evalute'; the closest is 'evaluate'\n")
    assert trainings.main(["plot", "no-such-folder"]) == 2
    assert "plot: expected run folders" in capsys.readouterr().err


def test_cule_runs_a_program(tmp_path: Path) -> None:
    """Both `python -m cule` and the console script return what the program returns."""
    path = tmp_path / "video.gif"
    words = ["record", "pong", *SHORT, "--output", str(path), "--device", "cpu"]
    done = warm.run(["-m", "cule", *words])
    assert done.returncode == 0 and path.stat().st_size > 500
    (script,) = re.findall(r'^cule = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    module, _, function = script.partition(":")
    main = getattr(importlib.import_module(module), function)
    assert main([*words, "--mode", "7"]) == 2


def test_cule_knows_no_other_program(capsys: pytest.CaptureFixture) -> None:
    assert overview.main(["dmeo"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("cule: expected one of demo, play, record, bench")
    assert error.endswith(", got 'dmeo'; the closest is 'demo'\n")


def test_one_parser_serves_all_programs() -> None:
    for program in ("bench.__main__", "demo", "info", "play", "record"):
        assert type(importlib.import_module(f"cule.{program}").make_parser()) is Parser


@pytest.mark.parametrize("program", ["bench", "demo", "info", "play", "record"])
def test_help_explains_every_option(program: str) -> None:
    done = warm.run(["-m", f"cule.{program}", "--help"])
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: python -m cule.{program}" in done.stdout
    module = "cule.bench.__main__" if program == "bench" else f"cule.{program}"
    parser = __import__(module, fromlist=["make_parser"]).make_parser()
    assert parser.description in " ".join(done.stdout.split())
    assert all(action.help for action in parser._actions)


@pytest.mark.parametrize(
    ("to", "wrong"), [("/dev/full", "No space left on device"), ("nobody", "Broken pipe")]
)
@pytest.mark.parametrize("what", ["a result", "--help"])
@pytest.mark.parametrize("buffered", [True, False])
def test_an_output_that_nobody_takes_is_a_sentence(to, wrong, what, buffered, capfd):
    def program() -> int:
        if what == "--help":
            return command_line.run_main(Parser(prog="train"), len, [what])
        return exit_status_of("train", lambda: print(what))

    reading, writing = os.pipe()
    os.close(reading)
    with (
        open(writing if to == "nobody" else to, "w") as output,
        pytest.MonkeyPatch.context() as now,
    ):
        output.reconfigure(write_through=not buffered)
        now.setattr(sys, "stdout", output)
        assert program() == 2
        output.flush()  # as Python does at its end
    said = capfd.readouterr().err
    assert said == f"train: expected an output that takes what is written, got: {wrong}\n"


def test_a_program_runs_without_outputs(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert exit_status_of("train", lambda: sys.stdout.write(sys.stderr.write("a") * "b") * 0) == 0
    sys.stdout.close()
    sys.stderr.close()
