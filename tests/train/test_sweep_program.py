"""The program cule.train.sweep, with real trainings: killed, stopped, and given mistakes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from training_runs import one_thread_each, without_times

from cule.train.sweep.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


OPTIONS = [
    "--num-envs", "4", "--num-steps", "8", "--minibatch-size", "16", "--width", "0.1",
    "--num-threads", "1", "--eval-episodes", "0", "--no-plot", "--logger", "none",
    "--checkpoint-every", "500", "--log-every", "1",
]  # fmt: skip


def command(folder, *words, frames, algorithm="examples.ppo.ppo"):
    return [
        sys.executable, "-m", "cule.train.sweep", "--algorithm", algorithm, "--folder",
        str(folder), "--device", "cpu", *words, "--", *OPTIONS, "--total-frames", str(frames),
    ]  # fmt: skip


def sweep_of(folder, *words, **more):
    return subprocess.run(
        command(folder, *words, **more), cwd=ROOT, env=one_thread_each(), capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.slow
def test_sweep_killed_and_started_again_gives_the_numbers_of_one_that_was_not(tmp_path):
    words = ["--games", "pong", "Breakout-v5", "--seeds", "0", "1", "--per-gpu", "2"]
    whole = sweep_of(tmp_path / "whole", *words, frames=4000)
    assert whole.returncode == 0, whole.stderr
    assert "The rows are in" in whole.stdout and len(whole.stdout.splitlines()) == 4
    parts = tmp_path / "parts"
    killed = 0
    for _ in range(3):
        with subprocess.Popen(
            command(parts, *words, frames=4000), cwd=ROOT, env=one_thread_each(),
            stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            while process.poll() is None:
                if len(list(parts.glob("*/checkpoints/*.complete"))) > killed:
                    process.kill()
                    killed += 1
                    break
                time.sleep(0.02)
            process.stderr.read()
    assert killed
    done = sweep_of(parts, *words, frames=4000)
    assert done.returncode == 0, done.stderr
    for name in ("pong-0", "pong-1", "breakout-0", "breakout-1"):
        assert without_times(parts / name) == without_times(tmp_path / "whole" / name)
    rows = [json.loads(line) for line in (parts / "results.jsonl").open()]
    assert [(row["game"], row["seed"]) for row in rows] == [
        ("pong", 0), ("pong", 1), ("breakout", 0), ("breakout", 1),
    ]  # fmt: skip


@pytest.mark.slow
def test_sweep_stopped_by_ctrl_c_says_how_to_go_on(tmp_path):
    folder = tmp_path / "runs"
    words = command(folder, "--games", "pong", frames=10**9)
    with subprocess.Popen(
        words, cwd=ROOT, env=one_thread_each(), stderr=subprocess.PIPE, text=True
    ) as process:
        while not (folder / "pong-0" / "log.jsonl").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told = process.communicate()[1]
    assert process.returncode == 130
    assert told.splitlines()[-1].startswith(
        "Stopped: 1 stopped. To go on: python -m cule.train.sweep --algorithm examples.ppo.ppo"
    )
    assert list(folder.glob("pong-0/checkpoints/*.complete"))


@pytest.mark.parametrize(
    "words, options, message",
    [
        (["--games", "pnog"], [], "got 'pnog'; closest: 'pong'"),
        (["--games", "pong", "--per-gpu", "0"], [], "expected per_gpu to be at least 1, got 0"),
        (["--games", "pong", "--gpus", "0"], [], "expected gpus or device cpu, got both"),
        (["--games", "pong"], ["--num-envs", "0"], "expected num_envs to be at least 1, got 0"),
        (["--games", "pong"], ["--seed", "3"], "expected --seeds before --, got --seed after it"),
        (["--games", "pong"], ["--explain"], "expected options that train, got --explain"),
        (["--games", "pong", "--algorithm", "examples.no"], [], "a training program such as"),
        (["--games", "pong", "--algorithm", "cule.info"], [], "define one algorithm and its set"),
    ],
    ids=lambda value: "-".join(value)[:30] if isinstance(value, list) else "",
)
def test_sweep_answers_mistakes_with_a_sentence_before_it_starts_anything(
    tmp_path, monkeypatch, capsys, words, options, message
):
    told = ["--algorithm", "examples.ppo.ppo", "--folder", str(tmp_path / "x"), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["sweep", *told, *words, "--", *options])
    assert main() == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("sweep: ") and error.count("\n") == 1
    assert not (tmp_path / "x").exists()
