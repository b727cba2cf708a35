"""Shared by the tests of training runs: small settings, commands, and what a run has saved."""

from __future__ import annotations

import copy
import os
import sys
import time
from pathlib import Path

import torch

from cule import train
from cule.train.checkpoints import checkpoint
from cule.train.checkpoints.writer import Writer
from cule.train.command import options_of
from cule.train.distributed.process_group import ProcessGroup
from cule.train.logs.log import read_log
from examples.a2c_vtrace.train import A2C, Args

ROOT = Path(__file__).resolve().parents[2]


def processes(count, program="examples.a2c_vtrace.train"):
    """The command of a training in some processes; options follow it."""
    return [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
        str(count), "-m", program,
    ]  # fmt: skip


TWO_PROCESSES = processes(2)
WORLD = ProcessGroup(0, 1, torch.device("cpu"))
# The values that differ between two equal runs.
TIMES = ("seconds", "fps", "ups", "pps", "ttop", "actors_waited")
SMALL = {
    "game": "breakout", "device": "cpu", "num_envs": 8, "num_batches": 2, "num_steps": 4,
    "steps_per_update": 2,
    "width": 0.1, "learning_rate": 3e-3, "log_every": 5, "checkpoint_every": 0, "eval_episodes": 0,
    "num_threads": 1,
    "life_loss_ends": True, "max_episode_frames": 150, "warmup_steps": 0,
    "progress": False, "logger": "none", "plot": False,
}  # fmt: skip


def trained(args):
    return train.train(A2C, args)


def one_thread_each():
    """The environment of processes that use one thread each."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def children_of(pid):
    """The processes that a process's first thread has started, by their ids."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def settings(run, **changes):
    return Args(folder=run, **{**SMALL, **changes})


def options(run, **changes):
    """The settings as options of the command line."""
    return options_of({"folder": run, **SMALL, **changes})


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


def save(folder, steps, state, before=None):
    """Writes a set of checkpoints, and waits until it is complete."""
    writer = Writer(folder, WORLD)
    try:
        writer.begin(steps, state, before)
        writer.finish()
    finally:
        writer.close()


def state_after(make, iterations, restart=None):
    """A trainer's state after some iterations; from `restart` on another trainer goes on."""
    trainer = make()
    for number in range(iterations):
        if number == restart:
            state = copy.deepcopy(trainer.state_dict())
            trainer.close()
            trainer = make()
            trainer.load_state_dict(state)
        trainer.iterate()
    state = copy.deepcopy(trainer.state_dict())
    trainer.close()
    return state


def scores_after(trainer, steps, more):
    """The sum and the number of the scores of episodes in `more` steps, after the first ones."""
    while trainer.steps < steps:
        trainer.iterate()
    trainer.collector.episodes.take_scores()
    while trainer.steps < steps + more:
        trainer.iterate()
    total, episodes, *_ = trainer.collector.episodes.take_scores().tolist()
    return total, episodes


def assert_same(a, b):
    """Asserts that two values are exactly equal, including tensors inside them."""
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


def wait_until(done, process):
    """Waits until something is true, while a process runs."""
    while not done():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)


def wait_for(path, process, lines):
    """Waits until a log has some lines."""
    wait_until(lambda: path.exists() and path.read_text().count("\n") >= lines, process)


def wait_for_checkpoint(run, process):
    """Waits until a set of checkpoints is complete, which is some time after its log's line."""
    wait_until(lambda: checkpoint.complete_sets(run / "checkpoints"), process)
