"""Rows of `python -m cule.bench`: read, shown and drawn; and mistakes on its command line."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import pytest
from bench_runs import AGREED_KEYS, SHORT, read_json, run

from cule.bench import measure
from cule.bench.cases import MODES
from cule.bench.plot import boxes
from cule.bench.rows import Row, read_rows, table

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks/results"


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
    """Rows of other modes, which hold other things, are no damaged ones: there is no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = read_rows(sorted(RESULTS.glob("*.jsonl")))
    assert {row.mode for row in rows} == {*MODES, "training"}
    assert {row.system for row in rows} >= {"cule", "ale-py"}
    assert "median" in table(rows)


def test_bench_leaves_evaluations_out(tmp_path: Path) -> None:
    """Evaluations of trained policies have scores and no speed."""
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
    wanted = (
        f"cule.bench: expected a file of results that can be written, got {results}: "
        "No space left on device\n"
    )
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
    """A plot with one more panel is wider."""
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


def test_results_into_a_fifo_are_refused_instead_of_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    assert run("pong", *SHORT, "--results", str(tmp_path / "rows.jsonl")) == 2
    assert "rows.jsonl, which is a FIFO" in capsys.readouterr().err


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
            "expected --results to name a file that can be written, got /dev/null/rows.jsonl: ",
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
            ["pong", "--env-groups", "2"],
            "expected --env-groups with --with-policy or --with-training",
        ),
        (
            ["pong", "--with-policy", "--env-groups", "3", "--num-envs", "6", "8"],
            "expected --env-groups to divide --num-envs (8), got 3",
        ),
        (
            ["pong", "--with-training", "--against-original"],
            "expected --env-groups without --against-original, whose envs step at once",
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
