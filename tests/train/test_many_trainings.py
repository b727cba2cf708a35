"""Sweeps: many trainings on few devices, stopped, killed and failing."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cule.train.sweep import Job, Sweep, jobs, node, sweep
from cule.train.sweep.jobs import JobState
from cule.train.sweep.table import Live, summary

ROOT = Path(__file__).resolve().parents[2]
# A program that trains nothing but behaves as a training does.
PRETENDER = """
import json, os, signal, sys, time
from pathlib import Path

words = sys.argv[1:]
value = lambda name, default=None: words[words.index(name) + 1] if name in words else default
folder = Path(value("--folder"))
assert "--resume" in words and value("--device").startswith("dev")
with (folder / "starts").open("a") as file:
    file.write(f"{value('--device')} {time.monotonic()}\\n")
starts = len((folder / "starts").read_text().splitlines())
(folder / "turns").write_text(os.environ["CULE_GPU_LOCKS"])
print("Here I am.", file=sys.stderr)
if starts <= int(value("--fails", "0")):
    sys.exit("The GPU is gone.\\nOh no.")
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
time.sleep(float(value("--startup", "0")))
frames = 0
while frames < int(value("--total-frames")) and not stopped:
    frames += 100
    line = {"kind": "training", "frames": frames, "seconds": frames / 100, "fps": 100.0}
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(line | {"score": 1.5}) + "\\n")
    time.sleep(float(value("--pause", "0.05")))
(folder / "trained").write_text(str(time.monotonic()))
time.sleep(float(value("--evaluates", "0")))
row = {"algorithm": "P", "game": value("--game"), "seed": int(value("--seed")), "frames": frames,
       "fps": 100.0, "seconds": 1.0, "score": float(value("--seed"))}
with (folder / "result.jsonl").open("a") as file:
    file.write(json.dumps(row | ({"interrupted": True} if stopped else {})) + "\\n")
(folder / "ended").write_text(str(time.monotonic()))
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "pretender.py"
    path.write_text(PRETENDER)
    return str(path)


def job(program, seed, *more, game="pong", frames=200):
    words = ("--game", game, "--seed", str(seed), "--total-frames", str(frames), *more)
    return Job(f"{game}-{seed}", (program, *words))


def starts(folder):
    return [line.split()[0] for line in (folder / "starts").read_text().splitlines()]


def overlapping(folders, end="ended"):
    """The most trainings that ran at the same time."""
    times = []
    for folder in folders:
        begun = float((folder / "starts").read_text().splitlines()[-1].split()[1])
        times += [(begun, 1), (float((folder / end).read_text()), -1)]
    running = [sum(step for _, step in sorted(times)[: i + 1]) for i in range(len(times))]
    return max(running)


def test_sweep_runs_some_on_each_device_and_returns_rows_in_order(tmp_path, program):
    # Long enough that two are there at the same time on a busy machine, too.
    jobs = [job(program, seed, "--pause", "0.5") for seed in (3, 1, 4, 0, 5)]
    folder, shown = tmp_path / "runs", []
    made = Sweep(jobs, folder, ["dev0", "dev1"])
    rows = made.run(lambda states: shown.append([state.state for state in states]))
    assert [row["job"] for row in rows] == ["pong-3", "pong-1", "pong-4", "pong-0", "pong-5"]
    assert [row["score"] for row in rows] == [3, 1, 4, 0, 5]
    assert [json.loads(line) for line in (folder / "results.jsonl").open()] == rows
    folders = [folder / one.name for one in jobs]
    assert overlapping(folders) == 2
    assert {device for one in folders for device in starts(one)} == {"dev0", "dev1"}
    assert shown[0][:3] == ["running", "running", "waiting"]
    assert shown[-1] == ["finished"] * 5
    # The same again: nothing is left to do.
    assert Sweep(jobs, folder, ["dev0"]).run() == rows
    assert all(len(starts(one)) == 1 for one in folders)
    # Another seed comes to the same folder.
    more = Sweep([*jobs, job(program, 9)], folder, ["dev0"], 3).run()
    assert more[:5] == rows and more[5]["seed"] == 9
    # Those of a device have as many turns as may train there.
    turns = [json.loads((folder / name / "turns").read_text()) for name in ("pong-3", "pong-9")]
    assert turns[0] == [str(folder / f"turn-{starts(folder / 'pong-3')[0]}-0.lock")]
    assert turns[1] == [str(folder / f"turn-dev0-{number}.lock") for number in range(3)]


def test_the_next_training_starts_while_the_last_one_is_evaluated(tmp_path, program, monkeypatch):
    monkeypatch.setattr(sweep, "LOOK", 0.02)
    jobs = [job(program, seed, "--evaluates", "2") for seed in range(4)]
    shown = []
    Sweep(jobs, tmp_path / "runs", ["dev0"], beside=2).run(
        lambda states: shown.append([state.evaluating for state in states])
    )
    folders = [tmp_path / "runs" / one.name for one in jobs]
    assert overlapping(folders, "trained") == 1
    # One trains, two are evaluated; a third evaluation keeps its place.
    assert overlapping(folders) == 3
    assert [True, False, False, False] in shown and [True, True, True, False] in shown


@pytest.mark.slow
def test_the_next_training_starts_so_early_that_it_trains_when_the_last_one_has(
    tmp_path, program, monkeypatch
):
    """How long a start takes is known as soon as a training has begun."""
    monkeypatch.setattr(sweep, "LOOK", 0.02)
    often = ("--startup", "2", "--pause", "1")
    jobs = [job(program, seed, *often, frames=500) for seed in range(2)]
    Sweep(jobs, tmp_path / "runs", ["dev0"]).run()
    folders = [tmp_path / "runs" / one.name for one in jobs]
    trained = [float((one / "trained").read_text()) for one in folders]
    begun = float((folders[1] / "starts").read_text().split()[1])
    assert trained[0] - 2.5 < begun < trained[0] - 1


@pytest.mark.parametrize("emulator, word", [("cule", "--resume"), ("ale-py", "--overwrite")])
def test_a_training_on_ale_py_which_saves_no_states_begins_anew(
    tmp_path, monkeypatch, emulator, word
):
    started = []
    monkeypatch.setattr(jobs.subprocess, "Popen", lambda words, **_: started.append(words))
    job = Job("a", ("-m", "examples.a2c_vtrace.train", "--emulator", emulator))
    jobs.start(job, tmp_path / "a", "cpu")
    assert set(started[0]) & {"--resume", "--overwrite"} == {word}


def test_sweep_starts_a_failed_training_once_more_while_the_others_go_on(tmp_path, program):
    jobs = [job(program, 0, "--fails", "1"), job(program, 1, "--fails", "9"), job(program, 2)]
    made = Sweep(jobs, tmp_path / "runs", ["dev0"], 2)
    rows = made.run()
    assert [state.state for state in made.states] == ["finished", "failed", "finished"]
    assert [state.starts for state in made.states] == [2, 2, 1]
    assert rows[1]["job"] == "pong-1" and rows[1]["error"].endswith("The GPU is gone.\nOh no.")
    assert [row.get("score") for row in rows] == [0, None, 2]
    assert "pong-1" not in summary(rows) and len(summary(rows).splitlines()) == 2


def test_sweep_takes_a_training_that_someone_stops_for_unfinished(tmp_path, program, monkeypatch):
    monkeypatch.setattr(sweep, "LOOK", 0.0)
    made = Sweep([job(program, 0, "--pause", "0.3")], tmp_path / "runs", ["dev0"])
    killed = []

    def kill(states):
        (process,) = made._running or [None]
        if process is not None and states[0].frames and not killed:
            killed.append(process.pid)
            os.kill(process.pid, signal.SIGTERM)

    (row,) = made.run(kill)
    assert made.states[0].starts == 2 and killed and row["frames"] == 200


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda p: [], "expected a training and a device or more, and .*, got 0 trainings"),
        (lambda p: [job(p, 0), job(p, 0)], "expected jobs of different names, got pong-0"),
        (lambda p: [Job("../x", (p,))], r"job's name to name a folder, got '\.\./x'"),
        (lambda p: [Job("x", ("train",))], "expected a command"),
        (lambda p: [job(p, 0, "--device=cpu")], "options without --device, which the sweep"),
        (lambda p: [job(p, 0, "--overwrite")], "options without --overwrite, which the sweep"),
    ],
    ids=["none", "twice", "name", "command", "device", "overwrite"],
)
def test_sweep_refuses_jobs_that_are_wrong(tmp_path, program, make, message):
    with pytest.raises(ValueError, match=message):
        Sweep(make(program), tmp_path / "runs", ["dev0"])


def test_sweep_refuses_a_folder_with_other_settings(tmp_path, program):
    Sweep([job(program, 0)], tmp_path / "runs", ["dev0"]).run()
    with pytest.raises(ValueError, match=r"expected pong-0 in .* with the settings that it has .*"
                       r"--total-frames 200\), got .*300: name another folder"):  # fmt: skip
        Sweep([job(program, 0, frames=300)], tmp_path / "runs", ["dev0"])
    (tmp_path / "runs" / "sweep.json").write_text("{")
    with pytest.raises(ValueError, match=r"sweep.json as a sweep writes it"):
        Sweep([job(program, 0)], tmp_path / "runs", ["dev0"])


@pytest.mark.parametrize("content", ["[]", '{"pong-1": 3}', "[" * 100_000, None])
def test_sweep_refuses_a_folder_whose_list_of_jobs_is_damaged(tmp_path, program, content):
    path = tmp_path / "sweep.json"
    if content is None:
        os.mkfifo(path)
    else:
        path.write_text(content)
    with pytest.raises(ValueError, match=r"expected .*sweep\.json as a sweep writes it, got"):
        Sweep([job(program, 1)], tmp_path, ["dev0"])


WHOLE = {"algorithm": "P", "game": "pong", "frames": 9, "fps": 1.0, "seconds": 1.0, "score": None}


@pytest.mark.parametrize(
    "row",
    [
        '{"a": 1}',
        "[]",
        *(json.dumps(WHOLE | {name: value}) for name, value in {
            "algorithm": None, "game": [], "frames": None, "fps": float("nan"), "seconds": "9",
            "score": 10**400,
        }.items()),
    ],
)  # fmt: skip
def test_sweep_leaves_out_a_damaged_row_and_lines_of_a_log(tmp_path, program, row):
    """What a training wrote is read while it runs, too."""
    folder = tmp_path / "pong-1"
    folder.mkdir()
    (folder / "result.jsonl").write_text(f"{row}\n")
    line = {"kind": "training", "frames": 8, "fps": 1.0, "score": None, "seconds": "12"}
    (folder / "log.jsonl").write_text(f"{json.dumps(line)}\n")
    state = JobState(job(program, 1))
    state.look(folder)
    assert state.frames == 0
    with pytest.warns(UserWarning, match="left out"):
        rows = Sweep([job(program, 1)], tmp_path, ["dev0"]).run()
    assert [one["score"] for one in rows] == [1]


def test_sweep_refuses_a_folder_that_another_one_uses(tmp_path, program, monkeypatch):
    monkeypatch.setattr(sweep, "PATIENCE", 0.2)
    made = Sweep([job(program, 0)], tmp_path / "runs", ["dev0"])
    problems = []

    def second(states):
        if not problems:
            with pytest.raises(ValueError, match="expected a folder that no other sweep uses"):
                Sweep([job(program, 1)], tmp_path / "runs", ["dev0"]).run()
            problems.append(1)

    made.run(second)
    assert problems


SWEEPER = """
import sys
from pathlib import Path
from cule.train.sweep import Job, Sweep
program, folder, pause = sys.argv[1:]
words = ("--game", "pong", "--total-frames", "1000", "--pause", pause)
jobs = [Job(f"pong-{seed}", (program, *words, "--seed", str(seed))) for seed in range(3)]
sweep = Sweep(jobs, Path(folder), ["dev0"], 2)
sweep.run()
print([state.state for state in sweep.states], sweep.interrupted)
"""


def processes_of(program):
    """The processes that run a program."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if program.encode() in words[:2]:
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_sweep_stopped_or_killed_leaves_no_training_behind(tmp_path, program, kill):
    command = [sys.executable, "-c", SWEEPER, program, str(tmp_path / "runs"), "0.5"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        while len(processes_of(program)) < 2 or not (tmp_path / "runs/pong-1/log.jsonl").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(kill)
        told = process.communicate()[0]
    end = time.monotonic() + 10
    while processes_of(program) and time.monotonic() < end:
        time.sleep(0.05)
    assert processes_of(program) == []
    if kill == signal.SIGKILL:
        assert not (tmp_path / "runs/pong-1/result.jsonl").exists()
    else:
        assert told == "['stopped', 'stopped', 'waiting'] True\n"
        assert '"interrupted": true' in (tmp_path / "runs/pong-1/result.jsonl").read_text()


def test_live_table_is_drawn_in_place_on_a_terminal(program):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    states = [JobState(job(program, seed)) for seed in range(40)]
    states[7].state, states[7].device, states[7].frames = "running", "cuda:1", 1_234_000
    states[7].fps, states[7].seconds_left, states[7].score = 12345.6, 3725.0, -20.25
    file = Terminal()
    live = Live(file)
    live(states)
    # More than fit: those that run.
    first = file.getvalue().splitlines()
    assert len(first) == 3 and first[2] == "39 waiting, 1 running"
    assert re.split(r"  +", first[1]) == [
        "pong-7", "pong", "7", "cuda:1", "running", "1,234,000", "12,346", "-20.2", "1:02:05",
    ]  # fmt: skip
    live(states[:8])
    assert file.getvalue().count("\x1b[3F\x1b[J") == 1


def test_live_table_in_a_file_is_a_line_for_each_change(program):
    states = [JobState(job(program, seed)) for seed in range(3)]
    file = io.StringIO()
    live = Live(file)
    live(states)
    states[1].state, states[1].device, states[1].starts = "running", "cuda:0", 1
    live(states)
    live(states)
    states[1].finish({"frames": 5000, "fps": 250.0, "score": 3.0})
    live(states)
    assert file.getvalue().splitlines() == [
        "pong-1: device cuda:0, state running",
        "pong-1: device cuda:0, state finished, frames 5,000, FPS 250, score 3.0",
    ]


def test_summary_has_mean_and_deviation_over_seeds():
    row = {"algorithm": "PPO", "game": "pong", "frames": 100, "fps": 10.0, "seconds": 10.0}
    rows = [row | {"score": score} for score in (1.0, 3.0, None)]
    rows += [row | {"game": "breakout", "score": None}, {"job": "x", "error": "no"}]
    lines = [re.split(r"  +", line) for line in summary(rows).splitlines()]
    assert lines[1:] == [
        ["PPO", "pong", "3", "100", "10", "10.0", "2.00", "1.41"],
        ["PPO", "breakout", "1", "100", "10", "10.0", ".", "."],
    ]


def test_traceback_of_a_failed_training_shows_the_last_line_of_its_own(tmp_path):
    (tmp_path / node.OUTPUT).write_text(
        "Training\n"
        f"{jobs.TRACEBACK}\n"
        f'  File "{jobs.__file__}", line 3, in iterate\n    loss()\n'
        '  File "/home/me/mine.py", line 7, in loss\n    self.net(x)\n    ^^^^^\n'
        '  File "/usr/lib/site-packages/torch/linear.py", line 1, in forward\n    linear(x)\n'
        '  File "/usr/lib/site-packages/torch/linear.py", line 2, in linear\n    multiply(x)\n'
        "RuntimeError: shapes\n"
    )
    told = jobs.last_lines(tmp_path).splitlines()
    assert told[:2] == ['  File "/home/me/mine.py", line 7, in loss', "    self.net(x)"]
    assert told[-1] == "RuntimeError: shapes" and len(told) == 5
