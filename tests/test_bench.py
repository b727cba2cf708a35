"""The benchmark: rows with the agreed keys, cases that fail, plots, sentences for mistakes. No
timing is asserted."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import pytest
import torch

from cule.bench import measure, systems
from cule.bench.__main__ import main
from cule.bench.cases import Case
from cule.bench.plot import boxes
from cule.bench.rows import Row, read_rows, table
from cule.rom import ROM_DIR_VARIABLE, find_game, rom_path

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks/results"
KEYS = tuple(field.name for field in dataclasses.fields(Row))
AGREED_KEYS = {
    "commit", "date", "system", "mode", "device_name", "driver", "cuda", "torch", "game", "rom_md5",
    "num_envs",
    "frameskip", "fps", "steps_per_second", "command",
}  # fmt: skip
MEASURED_KEYS = {"commit", "date", "fps", "steps_per_second", "rounds"}
SHORT = ["--device", "cpu", "--seconds", "0.02", "--rounds", "2", "--warmup-steps", "2", "--quiet"]


def run(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code


def read_json(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def make_case(game: str = "pong", num_envs: int = 2, **options: Any) -> Case:
    settings = {
        "device": "cpu", "mode": "end-to-end", "frameskip": 4, "num_threads": 1, "seconds": 0.02,
        "rounds": 2,
        "warmup_steps": 2, "against_ale": False,
    }  # fmt: skip
    return Case(game, num_envs, **settings | options)


def make_row(
    game: str, num_envs: int, fps: float | None, system: str = "cule", **fields: Any
) -> Row:
    known = dict.fromkeys(AGREED_KEYS, "-") | {
        "mode": "end-to-end",
        "frameskip": 4,
        "steps_per_second": fps,
    }
    known |= {
        "game": game,
        "num_envs": num_envs,
        "fps": fps,
        "system": system,
        "command": f"{game} {num_envs}",
    }
    return Row(**known | fields)


def test_bench_appends_a_row_for_each_system_and_prints_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    results = tmp_path / "new" / "rows.jsonl"
    arguments = [
        "pong",
        "ALE/MsPacman-v5",
        "--num-envs",
        "1",
        "2",
        *SHORT,
        "--results",
        str(results),
    ]
    assert run(*arguments) == 0
    rows = read_json(results)
    assert [(row["game"], row["num_envs"], row["system"]) for row in rows] == [
        (game, num_envs, system)
        for game in ("pong", "ms_pacman")
        for num_envs in (1, 2)
        for system in ("cule", "ale-py")
    ]
    for row in rows:
        assert tuple(row) == KEYS
        assert row.keys() >= AGREED_KEYS
        assert len(row["rounds"]) == 2
        assert min(row["rounds"]) <= row["fps"] <= max(row["rounds"])
        assert row["error"] is None
        if row["system"] == "cule":
            assert 84 * 84 * 4 < row["bytes_per_env"] < 2**20
            assert row["warmup_steps"] >= 2
            assert row["distinct_share"] in (0.5, 1.0)
            assert row["faulty_envs"] == 0
        assert row["mode"] == "end-to-end"
        assert row["rom_md5"] == find_game(row["game"]).md5
        assert (row["driver"], row["cuda"]) == (None, None)
        assert row["fps"] > 0
        assert row["steps_per_second"] == pytest.approx(row["fps"] / 4, rel=1e-2)
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == [
        "end-to-end,", "game", "pong", "pong", "ms_pacman", "ms_pacman", "median", "median",
        "Appended",
    ]  # fmt: skip
    assert printed.err == ""


@pytest.mark.parametrize("mode", ["with-policy", "emulation-only"])
def test_bench_command_of_a_row_measures_its_case_again(mode: str, tmp_path: Path) -> None:
    results = tmp_path / "rows.jsonl"
    case = [
        "breakout",
        "--num-envs",
        "3",
        "--frameskip",
        "2",
        "--no-against-ale",
        f"--{mode}",
        *SHORT,
    ]
    assert run(*case, "--results", str(results)) == 0
    (row,) = read_json(results)
    assert (row["system"], row["mode"], row["frameskip"]) == ("cule", mode, 2)
    command = shlex.split(row["command"])
    assert command[:3] == ["python", "-m", "cule.bench"]
    assert run(*command[3:], "--quiet", "--results", str(results)) == 0
    first, again = read_json(results)
    for key in set(KEYS) - MEASURED_KEYS:
        assert first[key] == again[key]


def test_bench_measures_envpool_where_it_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    pytest.importorskip("envpool")
    results = tmp_path / "rows.jsonl"
    assert (
        run("pong", "--num-envs", "2", "--against-envpool", *SHORT, "--results", str(results)) == 0
    )
    assert [row["system"] for row in read_json(results)] == ["cule", "ale-py", "EnvPool"]
    assert all(row["fps"] > 0 for row in read_json(results))
    assert "EnvPool FPS" in capsys.readouterr().out


class EnvPool:
    """A stand-in for EnvPool, which has all of ale-py's games except one."""

    @staticmethod
    def list_all_envs() -> list[str]:
        return ["Pong-v5", "MsPacman-v5"]


@pytest.mark.parametrize(
    ("modules", "arguments", "sentence"),
    [
        (
            {"envpool": None},
            ["--against-envpool"],
            "expected EnvPool for --against-envpool (pip inst",
        ),
        ({"envpool": EnvPool}, ["--against-envpool"], "expected a game that EnvPool has for "),
        (
            {"torchcule": None},
            ["--against-original"],
            "expected torchcule (docs/benchmarks.md) for ",
        ),
        (
            {},
            ["--against-original", "--with-policy"],
            "expected --against-original without --with-",
        ),
    ],
    ids=["no EnvPool", "EnvPool without the game", "no CuLE 0.1", "CuLE 0.1 with a policy"],
)
def test_bench_checks_the_others_before_it_measures(
    modules: dict[str, Any],
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    """Also where only the last of the games is one that another system lacks."""
    monkeypatch.chdir(tmp_path)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)

    def measured(*_: Any) -> None:
        raise AssertionError("a case was measured")

    monkeypatch.setattr(measure.Worker, "measure", measured)
    assert run("pong", "ms_pacman", "qbert", *arguments, *SHORT) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.startswith("cule.bench: ") and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("checkout", [True, False])
def test_bench_makes_no_folder_for_its_results(
    checkout: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """They go to the checkout's where it is there, else to a file in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure.Worker, "measure", lambda _, case: fine(case))
    if checkout:
        (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    assert run("pong", "--no-against-ale", *SHORT) == 0
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    today = datetime.date.today().isoformat()
    name = f"benchmarks/results/{today}.jsonl" if checkout else f"cule-bench-{today}.jsonl"
    assert str(file.relative_to(tmp_path)) == name
    assert [row["game"] for row in read_json(file)] == ["pong"]
    assert f"Appended 1 rows to {name}." in capsys.readouterr().out


def test_envpool_is_refused_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(
        ValueError, match=r"expected EnvPool for --against-envpool \(pip install envpool\)"
    ):
        systems.EnvPoolSystem(make_case(against_envpool=True))


TORCHCULE = """
import pathlib, torch

class Cart:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        assert self.path.is_file()
    def game_name(self):
        return "Video Olympics (1978) (Atari)" if self.path.stem == "pong" else "Bowling (1978) (Atari) [!]"

class Env:
    def __init__(self, path, num_envs, color_mode, device, rescale, frameskip, repeat_prob, episodic_life):
        self.cart, self.num_envs, self.calls = Cart(path), num_envs, []
        assert (color_mode, device.type, rescale, repeat_prob) == ("gray", "cpu", True, 0.0)
    def train(self, frameskip):
        self.calls.append("train")
    def reset(self, initial_steps):
        self.calls.append("reset")
    def sample_random_actions(self):
        return torch.zeros(self.num_envs, dtype=torch.uint8)
    def step(self, actions):
        assert self.calls == ["train", "reset"] and len(actions) == self.num_envs
"""


@pytest.fixture
def torchcule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stand-in for CuLE 0.1, whose compiled part needs a GPU's driver to be imported."""
    package = tmp_path / "original" / "torchcule"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "atari.py").write_text(TORCHCULE)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv(
        "PYTHONPATH", f"{package.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    )
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchcule"]:
        del sys.modules[name]


@pytest.mark.usefixtures("torchcule")
def test_bench_measures_the_original_where_it_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    results = tmp_path / "rows.jsonl"
    arguments = ["pong", "--num-envs", "2", "--against-original", "--no-against-ale", *SHORT]
    assert run(*arguments, "--results", str(results)) == 0
    ours, original = read_json(results)
    assert (ours["system"], original["system"]) == ("cule", "CuLE 0.1")
    assert original["fps"] > 0 and original["bytes_per_env"] is None
    assert ours["command"] == original["command"] and "--against-original" in ours["command"]
    assert "CuLE 0.1 FPS" in capsys.readouterr().out


@pytest.mark.usefixtures("torchcule")
def test_roms_that_the_original_takes_for_others_are_refused() -> None:
    assert systems.OriginalSystem(make_case("bowling", against_original=True)).env.num_envs == 2
    with pytest.raises(
        ValueError, match=r"expected a ROM that CuLE 0\.1 knows, got 'ms_pacman', which it takes"
    ):
        systems.OriginalSystem(make_case("ms_pacman", against_original=True))
    with pytest.raises(ValueError, match="expected --against-original without --with-policy"):
        systems.OriginalSystem(make_case(against_original=True, mode="with-policy"))


def test_original_is_refused_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchcule", None)
    with pytest.raises(
        ValueError, match=r"expected torchcule \(docs/benchmarks.md\) for --against-original"
    ):
        systems.OriginalSystem(make_case(against_original=True))


# What is measured ---------------------------------------------------------------------------------


def test_bench_policy_draws_actions_from_its_logits(device: str) -> None:
    policy = systems.NatureCnn(3).to(device)
    final = policy.logits[-1]
    with torch.no_grad():
        final.weight.zero_()
        final.bias.copy_(torch.tensor([0.0, -1e9, 0.0]))
    actions = policy(torch.zeros((200, 4, 84, 84), dtype=torch.uint8, device=device))
    assert actions.shape == (200,)
    assert set(actions.tolist()) == {0, 2}


def test_bench_modes_differ_in_what_is_observed_and_who_acts(device: str) -> None:
    """With and without a policy, actions and observations stay on the device."""
    shapes = {
        "end-to-end": (2, 4, 84, 84),
        "emulation-only": (2, 128),
        "with-policy": (2, 4, 84, 84),
    }
    for mode, shape in shapes.items():
        system = systems.CuleSystem(make_case(mode=mode, device=device))
        assert (system.policy is not None) == (mode == "with-policy")
        before = system.info["frame_number"].clone()
        system.play(3)
        assert system.observations.shape == shape
        assert system.observations.device.type == system.actions.device.type == device
        assert (system.info["frame_number"] == before + 12).all()
        assert system.seconds(1) > 0
        system.close()


def test_bench_counts_distinct_states(device: str) -> None:
    system = systems.CuleSystem(make_case(num_envs=8, device=device))
    system.env.copy_state([0] * 7, [1, 2, 3, 4, 5, 6, 7])
    assert system.distinct_share() == 1 / 8
    system.env.engine.tensors["ram"][3:5, 127] += torch.tensor(
        [1, 2], dtype=torch.uint8, device=device
    )
    assert system.distinct_share() == 3 / 8


class Spreading:
    """A system whose shares of distinct states are known beforehand."""

    def __init__(self, *shares: float):
        self.shares, self.played = list(shares), []

    def play(self, steps: int, *, random: bool) -> None:
        assert random
        self.played.append(steps)

    def distinct_share(self) -> float:
        return self.shares.pop(0)


def test_bench_warms_up_until_games_have_spread_out() -> None:
    more = systems.SPREAD_STEPS
    for shares, played in (
        ((0.1, 1.0), [300]),  # all differ
        (
            (0.1, 0.4, 0.6, 0.9, 0.904),
            [300, more, more, more],
        ),  # they go on to differ more, then do not
        ((0.1, 0.1), [300]),  # they never do
    ):
        system = Spreading(*shares)
        assert systems.spread_out(system, 300) == (sum(played), shares[-1])
        assert system.played == played
        assert not system.shares
    endless = Spreading(*(share / 1000 for share in range(0, 990, 20)))
    assert systems.spread_out(endless, 300)[0] == systems.MOST_SPREAD_STEPS


# Failures -----------------------------------------------------------------------------------------


def test_bench_goes_on_after_a_game_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """A case whose ROM is missing, and a batch too large for any memory, between two that can be
    measured."""
    for game in ("pong", "breakout"):
        (tmp_path / f"{game}.bin").write_bytes(rom_path(find_game(game)).read_bytes())
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    results = tmp_path / "rows.jsonl"
    case = [
        "pong",
        "qbert",
        "breakout",
        "--num-envs",
        "1",
        "--no-against-ale",
        *SHORT,
        "--results",
        str(results),
    ]
    assert run(*case) == 1
    rows = read_json(results)
    assert [row["game"] for row in rows] == ["pong", "qbert", "breakout"]
    assert (
        [row["fps"] is None for row in rows]
        == [row["error"] is not None for row in rows]
        == [False, True, False]
    )
    assert rows[1]["error"].startswith("InvalidValue: expected the ROM of 'qbert' at ")
    printed = capsys.readouterr().out
    assert rows[1]["error"] in printed
    assert "Appended 3 rows" in printed


def too_large(case: Case) -> dict:
    """Stands in for a case with more envs than fit in memory."""
    raise torch.OutOfMemoryError(f"no room for {case.num_envs}, process {os.getpid()}\nsecond line")


def broken(case: Case) -> dict:
    """Stands in for a case after which the process cannot go on."""
    raise RuntimeError(f"CUDA failed in step, process {os.getpid()}")


def dying(case: Case) -> dict:
    """Stands in for a case in which the process is killed."""
    os._exit(9)


def fine(case: Case) -> dict:
    """Stands in for a case that can be measured."""
    return {"cule": measure.Measurement([float(os.getpid())], 0)}


def test_bench_replaces_the_process_that_a_case_ruined(monkeypatch: pytest.MonkeyPatch) -> None:
    with measure.Worker() as worker:

        def of(function: Any) -> Any:
            monkeypatch.setattr(measure, "measure", function)
            return worker.measure(make_case())

        process = of(fine)["cule"].rounds
        assert process != [os.getpid()]
        assert of(too_large) == f"OutOfMemoryError: no room for 2, process {process[0]:.0f}"
        assert of(fine)["cule"].rounds == process
        assert of(broken) == f"RuntimeError: CUDA failed in step, process {process[0]:.0f}"
        after_error = of(fine)["cule"].rounds
        assert after_error != process
        assert "ended" in of(dying)
        assert of(fine)["cule"].rounds not in (process, after_error)


def no_room_for_two(case: Case) -> dict:
    """Stands in for cases of which one is too large."""
    return too_large(case) if case.num_envs == 2 else fine(case)


def test_bench_reports_a_lack_of_memory_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(measure, "measure", no_room_for_two)
    results = tmp_path / "rows.jsonl"
    case = [
        "pong",
        "--num-envs",
        "1",
        "2",
        "3",
        "--no-against-ale",
        *SHORT,
        "--results",
        str(results),
    ]
    assert run(*case) == 1
    rows = read_json(results)
    assert [row["num_envs"] for row in rows] == [1, 2, 3]
    assert [row["fps"] is None for row in rows] == [False, True, False]
    assert rows[1]["error"].startswith("OutOfMemoryError: no room for 2")
    assert rows[0]["fps"] == rows[2]["fps"]  # by the same process
    assert rows[1]["error"] in capsys.readouterr().out


def test_bench_keeps_its_rows_when_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def measure_one(_: measure.Worker, case: Case) -> dict:
        if case.game == "qbert":
            raise KeyboardInterrupt
        return fine(case)

    monkeypatch.setattr(measure.Worker, "measure", measure_one)
    results = tmp_path / "rows.jsonl"
    assert (
        run("pong", "qbert", "breakout", "--no-against-ale", *SHORT, "--results", str(results))
        == 130
    )
    assert [row["game"] for row in read_json(results)] == ["pong"]
    assert capsys.readouterr().err.startswith("cule.bench: interrupted")


# Reading and drawing ------------------------------------------------------------------------------


def test_bench_table_pairs_systems_and_gives_medians() -> None:
    rows = [
        make_row("pong", 8, 300.0), make_row("pong", 8, 100.0, "ale-py"),
        make_row("qbert", 8, 500.0),
        make_row("qbert", 8, 1000.0, "ale-py"), make_row("pong", 8, 400.0),
        make_row("tetris", 8, None, error="Oh: no"),
        make_row("pong", 16, 7.0, device_name="other", bytes_per_env=1234567, command="else"),
    ]  # fmt: skip
    lines = [line.split() for line in table(rows).splitlines()]
    assert lines == [
        ["end-to-end,", "frameskip", "4,", "-"],
        ["game", "envs", "cule", "FPS", "steps/s", "bytes/env", "ale-py", "FPS", "ratio"],
        ["pong", "8", "400", "400", "100", "4.00"],
        ["qbert", "8", "500", "500", "1,000", "0.50"],
        ["tetris", "8", "Oh:", "no"],
        ["median", "8", "450", "450", "550", "2.25"],
        [],
        ["end-to-end,", "frameskip", "4,", "other"],
        ["game", "envs", "cule", "FPS", "steps/s", "bytes/env"],
        ["pong", "16", "7", "7", "1,234,567"],
    ]


def test_bench_reads_rows_of_earlier_versions() -> None:
    rows = read_rows(sorted(RESULTS.glob("*.jsonl")))
    assert {row.system for row in rows} >= {"cule", "ale-py"}
    assert "median" in table(rows)


def test_bench_leaves_evaluations_out(tmp_path: Path) -> None:
    """Those of trained policies, which have scores and no speed."""
    rows = [
        dataclasses.asdict(make_row("pong", 8, 100.0)),
        dataclasses.asdict(make_row("pong", 8, 0.0)),
    ]
    rows[1]["mode"] = "evaluation"
    del rows[1]["fps"], rows[1]["steps_per_second"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [row.fps for row in read_rows([tmp_path / "rows.jsonl"])] == [100.0]


def test_bench_leaves_damaged_rows_out_and_names_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    good = [
        json.dumps(dataclasses.asdict(make_row("pong", 8, fps))).encode() for fps in (1.0, 2.0, 3.0)
    ]
    damaged = [good[0][:40], b"\xff\x00 not text", b"[1, 2]", b'{"game": "pong"}', b"[" * 100_000,
               good[0].replace(b'"num_envs": 8', b'"num_envs": "8"')]  # fmt: skip
    path.write_bytes(
        b"\n".join([good[0], *damaged[:3], b"", good[1], *damaged[3:], good[2]])
        + b"\n"
        + good[0][:-9]
    )
    with pytest.warns(UserWarning) as warned:
        rows = read_rows([path])
    assert [row.fps for row in rows] == [1.0, 2.0, 3.0]
    expected = [
        f"left out line {number} of {path}, which is no row of results: "
        for number in (2, 3, 4, 7, 8, 9, 11)
    ]
    assert all(
        str(warning.message).startswith(text)
        for warning, text in zip(warned, expected, strict=True)
    )
    assert "expected num_envs to be int, got '8'" in str(warned[-2].message)


def test_bench_on_a_full_disk_leaves_whole_rows_and_shows_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    results, write, begun = tmp_path / "rows.jsonl", os.write, []

    def write_some(descriptor: int, content: bytes) -> int:
        if begun:
            raise OSError(28, "No space left on device")
        if b'"breakout"' in content:  # there is room for a part of its row
            begun.append(content)
            content = content[:100]
        return write(descriptor, content)

    # In this process, so that os.write is what it is here.
    monkeypatch.setattr(measure, "ProcessPoolExecutor", ThreadPool)
    monkeypatch.setattr(os, "write", write_some)
    assert run("pong", "breakout", "--no-against-ale", *SHORT, "--results", str(results)) == 2
    monkeypatch.undo()
    assert [row["game"] for row in read_json(results)] == ["pong"]
    printed = capsys.readouterr()
    wanted = f"cule.bench: expected a file of results that can be written, got {results}: No space left on device\n"
    assert printed.err == wanted
    assert [line.split()[0] for line in printed.out.splitlines()[2:-1]] == ["pong", "breakout"]


class ThreadPool(ThreadPoolExecutor):
    """A pool whose one worker is a thread of this process, which a test can change."""

    def __init__(self, count: int, _: object):
        super().__init__(count)


def test_bench_boxes_hold_the_last_row_of_each_game() -> None:
    rows = [
        make_row("pong", 8, 1.0), make_row("qbert", 8, 2.0), make_row("qbert", 16, 3.0),
        make_row("pong", 8, 4.0),
        make_row("pong", 16, None, error="no"), make_row("pong", 8, 5.0, "ale-py"),
        make_row("pong", 8, 6.0, mode="with-policy"),
    ]  # fmt: skip
    assert boxes(rows) == {
        "end-to-end": {
            "cule, -, frameskip 4": {8: [4.0, 2.0], 16: [3.0]},
            "ale-py, -, frameskip 4": {8: [5.0]},
        },
        "with-policy": {"cule, -, frameskip 4": {8: [6.0]}},
    }


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_bench_plots_rows_of_files(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """One panel more makes the picture wider."""
    rows = [
        make_row(game, n, 100.0 * n + i)
        for n in (8, 16)
        for i, game in enumerate(("pong", "qbert", "tetris"))
    ]
    others = [make_row("pong", 8, 50.0, mode="emulation-only", command="other")]
    widths = []
    for i, written in enumerate((rows, others)):
        (tmp_path / f"{i}.jsonl").write_text(
            "".join(json.dumps(dataclasses.asdict(row)) + "\n" for row in written)
        )
        sources = [str(tmp_path / f"{k}.jsonl") for k in range(i + 1)]
        path = tmp_path / f"{i}.{kind}"
        assert run("--from", *sources, "--plot", str(path)) == 0
        assert path.stat().st_size > 1000
        if kind == "png":
            widths.append(cv2.imread(str(path)).shape[1])
    assert widths == sorted(set(widths))
    printed = capsys.readouterr().out
    assert "tetris" in printed and f"The plot is in {path}." in printed


def test_bench_measures_and_plots_in_one_run(tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    case = [
        "pong",
        "--num-envs",
        "1",
        "2",
        "--emulation-only",
        *SHORT,
        "--results",
        str(tmp_path / "rows.jsonl"),
    ]
    assert run(*case, "--plot", str(path)) == 0
    assert cv2.imread(str(path)) is not None


def test_bench_without_matplotlib_says_so_before_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    results = tmp_path / "rows.jsonl"
    assert run("pong", *SHORT, "--results", str(results), "--plot", str(tmp_path / "plot.png")) == 2
    assert (
        capsys.readouterr().err
        == "cule.bench: expected matplotlib for --plot: pip install matplotlib\n"
    )
    assert not results.exists()


# Mistakes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pnog"], "got 'pnog'; closest: 'pong'"),
        (["pong", "--num-envs", "0"], "expected a whole number of at least 1, got '0'"),
        (["pong", "--seconds", "nan"], "expected a number above 0, got 'nan'"),
        (["pong", "--device", "tpu"], "got 'tpu'"),
        (["pong", "--frobnicate"], "unrecognized arguments: --frobnicate"),
        (
            ["pong", "--results", "/dev/null/rows.jsonl"],
            "--results has to name a file that can be written",
        ),
        ([], "expected a GAME, or 'all'; or --from with files of results"),
        (["pong", "--from", "rows.txt"], "expected either games or --from, got pong and --from"),
        (["--from", "rows.txt"], "expected a file of results that can be read, got rows.txt"),
        (["--from", __file__], f"expected a row of results, got line 1 of {__file__}"),
        (
            ["pong", "--emulation-only", "--with-policy"],
            "--with-policy: not allowed with argument --emulation-only",
        ),
        (
            ["pong", "--emulation-only", "--against-envpool"],
            "without --against-envpool, whose envs always observe",
        ),
        (
            ["pong", "--emulation-only", "--against-ale"],
            "expected --emulation-only without --against-ale, ",
        ),
        (
            ["pong", "--emulation-only", "--against-original"],
            "expected --emulation-only without --against-original, ",
        ),
        (
            ["pong", "--plot", "nowhere/plot.png"],
            "expected --plot to name a file that can be written, got nowhere/",
        ),
        (["pong", "--plot", "plot.xyz"], "expected --plot to name a file that ends in one of "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bench_says_in_one_sentence_what_is_wrong(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert printed.err.startswith("cule.bench: ") and printed.err.count("\n") == 1
    assert list(tmp_path.rglob("*.jsonl")) == []
