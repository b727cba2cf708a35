"""The campaigns of examples/a2c_vtrace/paper.py: what they run, that they go on, and the tables
they print."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tyro

from examples.a2c_vtrace import paper, paper_settings, paper_tables, train
from examples.dqn import dqn
from examples.ppo import ppo

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    "device=cpu", "num_envs=4", "num_batches=2", "num_steps=4", "width=0.1", "warmup_steps=0",
    "num_threads=1",
    "total_frames=800", "eval_every=400", "eval_from=-30", "eval_episodes=1", "eval_max_frames=80",
)  # fmt: skip
PARSERS = {
    "examples.a2c_vtrace.train": train.Args,
    "examples.ppo.ppo": ppo.Args,
    "examples.dqn.dqn": dqn.Args,
}


def settings(folder, **changes):
    asked = {
        "games": ("pong",),
        "settings": ("vtrace20",),
        "seeds": (3,),
        "but": SMALL,
        "progress": False,
    } | changes
    return paper.Args(folder=folder, **asked)


def result(setting, game, seconds, seed=0, **changes):
    """A row of train.py, with the keys that the tables read."""
    options = paper_settings.PLAIN | paper_settings.SETTINGS[setting]
    rest = {name: value for name, value in options.items() if name != "emulator"}
    frames = None if seconds is None else int(seconds * 1e6)
    row = {
        "system": options["emulator"],
        "game": game,
        "seconds_to_score": seconds,
        "frames_to_score": frames,
    }
    return row | {"seed": seed, "date": "2026-11-22T05:20:09+00:00"} | rest | changes


@pytest.mark.parametrize("table", [3, 4])
def test_programs_know_what_they_are_told(table, tmp_path):
    args = paper.Args(table=table)
    jobs = paper.table3_jobs(args) if table == 3 else paper.table4_jobs(args)
    assert len({job.name for job in jobs}) == len(jobs) == (3 * 5 * 4 if table == 3 else 2 * 2 * 3)
    for job in jobs:
        told = tyro.cli(PARSERS[job.module], args=job.command(tmp_path)[3:])
        assert all(getattr(told, name) == value for name, value in job.options.items())
        assert tmp_path in (getattr(told, "folder", None), told.results and told.results.parent)


def test_what_has_a_row_is_not_run_again(tmp_path, capsys):
    results = tmp_path / "rows.jsonl"
    assert paper.run(settings(tmp_path / "runs", results=results)) == 0
    row = json.loads(results.read_text())
    assert (row["game"], row["seed"], row["num_envs"], row["stop_at_score"]) == ("pong", 3, 4, 18)
    first = capsys.readouterr().out
    assert first.splitlines()[0] == "|  | pong 18 |" and first.endswith("| 0 of 1 |\n")
    assert paper.run(settings(tmp_path / "runs", results=results)) == 0
    assert capsys.readouterr().out == first
    assert len(results.read_text().splitlines()) == 1


def test_failure_is_told_and_does_not_stop_the_others(tmp_path, capsys):
    but = (*SMALL[:-5], "total_frames=0", "eval_every=0")  # which does not go with stop_at_score
    assert paper.run(settings(tmp_path, seeds=(0, 1), but=but)) == 1
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in told] == ["vtrace20-pong-0", "vtrace20-pong-1"]
    assert (
        "expected eval_every and eval_episodes above 0"
        in (tmp_path / "vtrace20-pong-0" / "output.txt").read_text()
    )


def test_signal_stops_all_and_the_command_goes_on(tmp_path):
    words = [
        "--games",
        "pong",
        "--settings",
        "vtrace20",
        "--seeds",
        "0",
        "1",
        "--no-progress",
        "--folder",
        tmp_path,
    ]
    endless = [change for change in SMALL if not change.startswith(("total", "eval_every"))]
    command = [
        sys.executable,
        "-m",
        "examples.a2c_vtrace.paper",
        *words,
        "--but",
        *endless,
        "eval_every=1000000000",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    log = tmp_path / "vtrace20-pong-0" / "log.jsonl"
    begun = time.monotonic()
    while not (log.exists() and log.read_text()) and time.monotonic() - begun < 120:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGTERM)
    told = process.communicate(timeout=120)[1]
    assert process.returncode == 1 and "Stopped by a signal" in told
    assert not list(tmp_path.glob("*/done.json")) and not (tmp_path / "vtrace20-pong-1").exists()
    assert paper.run(settings(tmp_path, seeds=(0, 1))) == 0
    assert len(list(tmp_path.glob("*/done.json"))) == 2


def test_table_3_has_means_over_seeds_each_by_its_best_row():
    newer = {"date": "2026-11-23T05:20:09+00:00"}
    rows = [
        result("vtrace20", "pong", 40.0, **newer), result("vtrace20", "pong", 99.0),
        result("vtrace20", "pong", 50.0, seed=1), result("vtrace20", "pong", None, seed=2),
        result("vtrace20", "asterix", 12.0, trainings_on_gpu=3),
        result("vtrace20", "asterix", 14.0, seed=1),
        result("ale", "pong", 300.0), result("ale", "pong", 900.0, trainings_on_gpu=3, **newer),
        result("vtrace20", "pong", 7.0, num_envs=64),
    ]  # fmt: skip
    assert paper_tables.table3(rows).splitlines() == [
        "|  | pong 18 | asterix 1000 |",
        "| --- | ---: | ---: |",
        "| ale | 300.0 s, 300.0 M (1 of 1) |  |",
        "| vtrace20 | 45.0 s, 45.0 M (2 of 3) | <13.0 s, 13.0 M (2 of 2) |",
        "| num envs 64, num batches 20, num steps 20, steps per update 1 | 7.0 s, "
        "7.0 M (1 of 1) |  |",
    ]


def test_table_4_has_both_emulators_side_by_side():
    shared = {"algorithm": "PPO", "num_envs": 1024}
    rows = [
        {**shared, "system": "ale-py", "fps": 1234.5, "gpu_utilization_mean": 9.6},
        {**shared, "system": "cule", "fps": 406004.4, "gpu_utilization_mean": None},
        {**shared, "system": "ale-py", "fps": 1000.0, "gpu_utilization_mean": 5.0},
    ]
    assert paper_tables.table4(rows).splitlines()[2:] == [
        "| PPO | 1,024 | 406,004 |  | 1,234 | 10% |"
    ]


def test_what_is_no_file_of_rows_is_told_in_a_sentence(tmp_path):
    file = tmp_path / "README.md"
    file.write_text("# Results")
    with pytest.raises(
        ValueError, match=r"expected a file of JSON lines, got .*README.md \(Expecting value"
    ):
        paper.run(paper.Args(show=(file,)))


def test_rows_of_a_file_are_shown_in_their_table(tmp_path, capsys):
    shared = {
        "system": "cule",
        "mode": "training",
        "game": "pong",
        "seconds": 3.0,
        "gpu_utilization_mean": 98.0,
    }
    goal = {
        **result("vtrace20", "pong", 40.0),
        **shared,
        "algorithm": "A2C+V-trace",
        "stop_at_score": 18.0,
    }
    rows = [
        goal,
        {**goal, "stop_at_score": None, "fps": 1e6},  # to no score, and not an algorithm of table 4
        {**shared, "algorithm": "DQN", "num_envs": 256, "fps": 5.0},
        {**shared, "algorithm": "A2C", "num_envs": 64, "fps": 6.0, "mode": "with-policy"},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    last = {3: "| vtrace20 | 40.0 s, 40.0 M (1 of 1) |", 4: "| DQN | 256 | 5 | 98% |  |  |"}
    for table, line in last.items():
        assert paper.run(paper.Args(table=table, show=(file,))) == 0
        assert capsys.readouterr().out.splitlines()[2:] == [line]


@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {"games": ("tetris",)},
            "expected games to be some of pong, ms_pacman, asterix, assault, got 'tetris'",
        ),
        ({"but": ("width",)}, "expected --but with NAME=VALUE, got 'width'"),
        ({"together": 0}, "expected together to be at least 1, got 0"),
    ],
)
def test_bad_settings_are_told_in_a_sentence(changes, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        paper.run(settings(tmp_path, **changes))
