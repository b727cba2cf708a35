"""Whole runs, small: resumed, stopped by a signal, over several processes, evaluated, plotted."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from examples.a2c_vtrace import checkpoint, evaluate, plot, train
from examples.a2c_vtrace.arguments import Args
from examples.a2c_vtrace.log import read_log
from examples.a2c_vtrace.world import World

ROOT = Path(__file__).resolve().parents[2]
# Trains in two processes, with the options behind it.
TWO_PROCESSES = [
    sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
    "-m", "examples.a2c_vtrace.train",
]  # fmt: skip
# What may differ between two runs that are the same otherwise.
TIMES = ("seconds", "fps", "ups")
SMALL = {
    "game": "breakout", "device": "cpu", "num_envs": 8, "num_batches": 2, "n_steps": 4,
    "steps_per_update": 2,
    "width": 0.1, "learning_rate": 3e-3, "log_every": 5, "checkpoint_every": 0, "eval_episodes": 0,
    "num_threads": 1,
    "life_loss_ends": True, "max_episode_frames": 150, "warmup_steps": 0,
    "progress": False, "tensorboard": False, "plot": False,
}  # fmt: skip


def one_thread_each():
    """The environment of processes that are not in each other's way."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def settings(run, **changes):
    return Args(folder=run, **{**SMALL, **changes})


def options(run, **changes):
    """The same on the command line."""
    words = ["--folder", str(run)]
    for name, value in {**SMALL, **changes}.items():
        option = name.replace("_", "-")
        words += (
            [f"--{'' if value else 'no-'}{option}"]
            if isinstance(value, bool)
            else [f"--{option}", str(value)]
        )
    return words


def without_times(run):
    return [
        {
            key: value
            for key, value in line.items()
            if key not in TIMES and not key.startswith("ms_")
        }
        for line in read_log(run / "log.jsonl")
    ]


def saved(run, rank=0):
    folder = run / "checkpoints"
    newest = checkpoint.complete_sets(folder)[0]
    with checkpoint.FILE.reading(folder / checkpoint.part_of(newest.steps, rank)) as file:
        return torch.load(file)["trainer"]


def assert_same(a, b):
    """Exactly equal, tensors anywhere in them."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    else:
        assert a == b


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"overlap": True, "optimizer": "rmsprop", "sticky": 0.25, "updates_at_once": 3},
        {"num_batches": 1, "steps_per_update": 4},
    ],
    ids=["V-trace", "overlap", "A2C"],
)
def test_train_resumed_is_as_if_never_stopped(tmp_path, changes):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train.train(settings(whole, total_frames=4000, **changes))
    # Stops between two lines of the log.
    train.train(settings(parts, total_frames=2300, **changes))
    train.train(settings(parts, total_frames=4000, resume=True, **changes))
    assert saved(whole)["updates"] > 30
    assert_same(saved(parts), saved(whole))
    assert without_times(parts) == without_times(whole)
    assert sum(line["episodes"] for line in without_times(whole)) > 8


def test_train_another_seed_is_another_run(tmp_path):
    """What the test above relies on to mean something."""
    for seed in (0, 1):
        train.train(settings(tmp_path / str(seed), total_frames=1000, seed=seed))
    weights = [saved(tmp_path / str(seed))["learner"]["model"]["policy.weight"] for seed in (0, 1)]
    assert not torch.equal(*weights)


def test_train_that_reached_its_score_has_when_resumed(tmp_path):
    asked = {
        "game": "pong", "max_episode_frames": 108_000, "eval_every": 400, "eval_episodes": 1,
        "eval_max_frames": 80,
        "stop_at_score": -30.0, "total_frames": 10_000,
    }  # fmt: skip
    first = train.train(settings(tmp_path, **asked))
    again = train.train(settings(tmp_path, resume=True, **asked))
    kept = ("frames", "updates", "score", "frames_to_score", "seconds_to_score")
    assert first["frames_to_score"] == first["frames"] < 1000
    assert [again[name] for name in kept] == [first[name] for name in kept]
    # To another score it goes on.
    more = train.train(
        settings(tmp_path, resume=True, **asked | {"stop_at_score": 30.0, "total_frames": 2000})
    )
    assert more["frames"] >= 2000 and more["frames_to_score"] is None


def test_train_refuses_a_folder_with_checkpoints_unless_told_what_to_do_with_them(tmp_path):
    train.train(settings(tmp_path, total_frames=1000))
    with pytest.raises(
        ValueError, match=r"expected a folder without checkpoints, got .*, which has another run's"
    ):
        train.train(settings(tmp_path, total_frames=500))
    assert saved(tmp_path)["steps"] * 8 * 4 >= 1000
    train.train(settings(tmp_path, total_frames=500, overwrite=True))
    assert 500 <= saved(tmp_path)["steps"] * 8 * 4 < 1000
    assert read_log(tmp_path / "log.jsonl")[-1]["frames"] < 1000


def test_train_stops_after_max_seconds_wherever_the_log_is_written(tmp_path):
    row = train.train(settings(tmp_path, total_frames=10**9, max_seconds=0.5, log_every=10**6))
    assert 0.5 <= row["seconds"] < 100 and 0 < row["frames"] < 10**9


def test_checkpoints_of_different_steps_are_different_sets(tmp_path, monkeypatch):
    """Also if nothing is learned in between: a set whose files were replaced one by one could be of
    two steps."""
    steps = []
    save = checkpoint.save
    monkeypatch.setattr(
        checkpoint, "save", lambda folder, at, *rest: steps.append(at) or save(folder, at, *rest)
    )
    train.train(settings(tmp_path, total_frames=1000, checkpoint_every=200, warmup_steps=10**6))
    assert len(steps) == len(set(steps)) == 5


@pytest.mark.parametrize("eval_every", [500, 1000, 0])
def test_evaluation_is_cut_off_by_a_signal(tmp_path, monkeypatch, eval_every):
    """And is as if it had not begun: the checkpoint is there, and the next run has the evaluation,
    also at its end."""
    asked = {
        "total_frames": 1000,
        "eval_every": eval_every,
        "eval_episodes": 1,
        "eval_max_frames": 400,
    }
    evaluating = evaluate.Evaluator.scores

    def interrupted(self, policy, seed, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return evaluating(self, policy, seed, **options)

    monkeypatch.setattr(evaluate.Evaluator, "scores", interrupted)
    row = train.train(settings(tmp_path, **asked))
    assert row["score"] is None and (row["frames"] < 1000) == (eval_every == 500)
    assert [line["kind"] for line in read_log(tmp_path / "log.jsonl")].count("evaluation") == 0
    monkeypatch.undo()
    assert train.train(settings(tmp_path, resume=True, **asked))["score"] is not None


def wait_for(path, process, lines):
    """Waits until a log has some lines."""
    while not path.exists() or path.read_text().count("\n") < lines:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)


def test_train_saves_and_exits_on_sigterm_and_goes_on_exactly(tmp_path):
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    command = [
        sys.executable,
        "-m",
        "examples.a2c_vtrace.train",
        *options(stopped, total_frames=10**9),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, env=one_thread_each(), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(stopped / "log.jsonl", process, 2)
        process.send_signal(signal.SIGTERM)
        told = process.communicate()[1]
    assert process.returncode == 0
    assert "--resume goes on from it" in told
    frames = saved(stopped)["steps"] * 8 * 4
    assert 0 < frames < 10**9
    train.train(settings(stopped, total_frames=frames + 500, resume=True))
    train.train(settings(whole, total_frames=frames + 500))
    assert_same(saved(stopped), saved(whole))
    assert without_times(stopped) == without_times(whole)


@pytest.mark.parametrize("launches", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_train_two_processes_learn_the_same_from_different_envs(tmp_path, launches):
    run = tmp_path / "run"
    for launch in range(launches):
        more = {"total_frames": 1500 * (launch + 1), "resume": True}
        done = subprocess.run(
            [*TWO_PROCESSES, *options(run, **more)],
            cwd=ROOT,
            env=one_thread_each(),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    first, second = saved(run, 0), saved(run, 1)
    assert first["updates"] == second["updates"] == 23 * launches
    assert_same(first["learner"]["model"], second["learner"]["model"])
    assert_same(first["learner"]["optimizer"], second["learner"]["optimizer"])
    assert first["player"]["episodes.score"].shape == (4,)
    assert not torch.equal(first["envs"]["tensors"]["ram"], second["envs"]["tensors"]["ram"])
    assert not torch.equal(first["player"]["rollout.actions"], second["player"]["rollout.actions"])
    # One of the two writes the log, and counts the frames of both.
    lines = without_times(run)
    assert [line["frames"] for line in lines] == sorted({line["frames"] for line in lines})
    rows = [json.loads(line) for line in (run / "result.jsonl").read_text().splitlines()]
    assert [row["num_gpus"] for row in rows] == [2] * launches
    assert rows[-1]["frames"] == lines[-1]["frames"] >= 1500 * launches


@pytest.mark.slow
def test_train_two_processes_stopped_by_a_signal_go_on_exactly(tmp_path):
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    endless = [*TWO_PROCESSES, *options(stopped, total_frames=10**9)]
    with subprocess.Popen(
        endless, cwd=ROOT, env=one_thread_each(), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(stopped / "log.jsonl", process, 2)
        process.send_signal(signal.SIGTERM)
        told = process.communicate(timeout=300)[1]
    assert "--resume goes on from it" in told
    frames = saved(stopped)["steps"] * 8 * 4
    for run, more in ((stopped, {"resume": True}), (whole, {})):
        words = options(run, total_frames=frames + 500, **more)
        subprocess.run(
            [*TWO_PROCESSES, *words],
            cwd=ROOT,
            env=one_thread_each(),
            check=True,
            capture_output=True,
            timeout=300,
        )
    for rank in range(2):
        assert_same(saved(stopped, rank), saved(whole, rank))
    assert without_times(stopped) == without_times(whole)


def threads_after_leaving(rank, port, queue):
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    world = World.join("cpu")
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    assert world.any(rank == 1)
    world.leave()
    queue.put([(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()])


def test_world_leaves_no_threads_behind():
    """One that lives on while Python ends aborts the process, now and then."""
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        context.Process(target=threads_after_leaving, args=(rank, port, queue)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
        assert not [name for name in queue.get() if "gloo" in name]


def test_train_stops_at_the_score_and_writes_a_row(tmp_path):
    results = tmp_path / "results.jsonl"
    run = tmp_path / "run"
    train.train(settings(
        run, game="pong", max_episode_frames=108_000, total_frames=50_000, eval_every=1000,
        eval_episodes=2,
        eval_max_frames=200, stop_at_score=-3.0, results=results, tensorboard=True, plot=True,
    ))  # fmt: skip
    row = json.loads(results.read_text())
    assert row["frames_to_score"] == row["frames"] < 2000
    assert 0 < row["seconds_to_score"] <= row["seconds"]
    assert row["score"] >= -3 and row["evaluation_seconds"] > 0
    assert (row["mode"], row["algorithm"], row["seed"], row["game"]) == (
        "training",
        "A2C+V-trace",
        0,
        "pong",
    )
    assert (run / "scores.png").stat().st_size > 5000
    assert list((run / "tensorboard").glob("events*"))

    rows = evaluate.evaluate(
        evaluate.Args(
            run, episodes=3, sticky=(0.0, 0.25), max_frames=400, device="cpu", num_threads=1
        )
    )
    assert [row["sticky"] for row in rows] == [0.0, 0.25]
    assert [
        json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()
    ] == rows
    for row in rows:
        assert -7 < row["score"] < 1 and row["score_min"] <= row["score"] <= row["score_max"]


@pytest.mark.parametrize("eval_from, evaluations", [(None, 4), (1000.0, 1), (-100.0, 3)])
def test_train_evaluates_where_training_does_well_enough(tmp_path, eval_from, evaluations):
    """The first episodes end after frame 1,000: before that there is no score."""
    train.train(settings(
        tmp_path, total_frames=4000, eval_every=1000, eval_episodes=1, eval_max_frames=40,
        eval_from=eval_from,
        log_every=1,
    ))  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert sum(line["kind"] == "evaluation" for line in lines) == evaluations


def test_train_on_ale_py_counts_the_same_and_can_be_evaluated(tmp_path):
    row = train.train(
        settings(
            tmp_path,
            emulator="ale-py",
            num_envs=4,
            num_batches=1,
            steps_per_update=4,
            total_frames=500,
        )
    )
    assert (row["system"], row["algorithm"]) == ("ale-py", "A2C")
    assert row["updates"] == row["frames"] // (4 * 4 * 4) > 0
    evaluation = evaluate.Args(
        tmp_path, episodes=2, sticky=(0.0,), max_frames=100, device="cpu", num_threads=1
    )
    (tried,) = evaluate.evaluate(evaluation)
    assert tried["frames"] == row["frames"]


def test_evaluate_counts_one_episode_of_each_env(monkeypatch):
    evaluator = evaluate.Evaluator(
        "pong", 4, torch.device("cpu"), sticky=0.0, max_frames=300, num_threads=1
    )
    before = evaluator.env.step
    steps = []

    def step(actions):
        result = before(actions)
        steps.append(result[1])
        return result

    monkeypatch.setattr(evaluator.env, "step", step)
    log_uniform = torch.full((4, 6), 1 / 6).log()
    scores = evaluator.scores(lambda _: (log_uniform, None), seed=0)
    evaluator.close()
    # Cut after 300 frames: 75 steps, in which the opponent wins points.
    assert len(steps) == 75
    assert (scores == sum(steps)).all() and (scores < 0).any()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"multiprocessors": -1}, "multiprocessors to be at least 0, got -1"),
        (
            {"num_envs": 9},
            r"num_envs to be a multiple of num_batches times the number of processes \(2 x 1\), "
            r"got 9",
        ),
        ({"n_steps": 0}, "n_steps to be at least 1, got 0"),
        ({"steps_per_update": 9}, r"steps_per_update to be at most n_steps \(4\), as .*, got 9"),
        ({"num_threads": -1}, "num_threads to be at least 0, got -1"),
        ({"seed": 2**40}, "seed to be from 0 to 4294967295, got 1099511627776"),
        ({"gamma": 3.0}, "gamma to be from 0 to 1, got 3.0"),
        ({"width": 0.0}, "width to be above 0, got 0.0"),
        ({"eval_episodes": -1}, "eval_episodes to be at least 0, got -1"),
        ({"resume": True, "overwrite": True}, "expected resume or overwrite, got both"),
        ({"stop_at_score": 1.0}, "eval_every and eval_episodes above 0 with stop_at_score"),
        ({"emulator": "ale-py", "resume": True}, "emulator cule with resume"),
        ({"emulator": "stella"}, "emulator to be one of cule, ale-py, got 'stella'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_train_refuses_settings_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        train.train(settings(tmp_path, **changes))


def test_train_refuses_to_resume_another_run(tmp_path):
    train.train(settings(tmp_path, total_frames=500))
    with pytest.raises(ValueError, match=r"expected n_steps as in the checkpoint \(4\), got 6"):
        train.train(settings(tmp_path, total_frames=1000, resume=True, n_steps=6))


@pytest.mark.parametrize("changes, message", [
    ({"episodes": 0}, "episodes to be at least 1, got 0"),
    ({"sticky": (0.0, 3.0)}, "sticky to be from 0 to 1, got 3.0"),
    ({"max_frames": 0}, "max_frames to be at least 1, got 0"),
    ({}, "expected a run folder with checkpoints, as train.py writes it, got"),
])  # fmt: skip
def test_evaluate_refuses_settings_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        evaluate.evaluate(evaluate.Args(tmp_path, device="cpu", **changes))


def test_plot_refuses_nothing_and_a_folder_without_a_log(tmp_path):
    with pytest.raises(
        ValueError, match=r"expected run folders, as train\.py writes them, got none"
    ):
        plot.plot([], tmp_path / "scores.png")
    with pytest.raises(ValueError, match=r"expected run folders with a log\.jsonl"):
        plot.plot([tmp_path], tmp_path / "scores.png")
