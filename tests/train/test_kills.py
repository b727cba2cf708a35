"""Killed at any moment by `kill -9`, a resumed run gives the numbers of one that was not."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import time
from pathlib import Path

import continuous
import pytest
from on_atari import WRITTEN
from test_algorithms import PROGRAMS
from training_runs import assert_same, saved, without_times

from cule import train
from examples.ppo import ppo
from examples.reinforce import reinforce
from examples.self_play import train as self_play
from tests.support.marks import few

KILLED = PROGRAMS | {
    "n-step": (reinforce.Reinforce, reinforce.Args, {"num_steps": 8, "n_step": 2}),
    "LSTM": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 16, "model": "lstm"}),
}
TWO_PLAYERS = {"game": "pong", "width": 0.1, "num_steps": 8, "minibatch_size": 16}
# All kinds of algorithms: the examples have V-trace, GAE, and prioritized double DQN with n = 3.
MORE_KINDS = {
    "SAC": (continuous.SAC, continuous.Args, {"n_step": 3}),
    "self-play": (self_play.SelfPlay, self_play.Args, TWO_PLAYERS),
    "two learners": (self_play.SelfPlay, self_play.Args, TWO_PLAYERS | {"learners": "two"}),
}
ALL = KILLED | WRITTEN | MORE_KINDS
MORE = {"DQN": {"target_every": 7, "epsilon_frames": 4000}, "PPO": {"lag": 1}}


def run(name, folder, total_frames):
    """Trains; in a process of its own where it is to be killed."""
    algorithm, settings, changes = ALL[name]
    if name in KILLED:
        changes = {"width": 0.1, **changes}
    common = {
        "device": "cpu", "num_threads": 1, "progress": False, "plot": False, "logger": "none",
        "eval_episodes": 0, "resume": True, "num_envs": 8, "game": "breakout",
        "max_episode_frames": 150, "checkpoint_every": 500, "log_every": 5,
        "folder": Path(folder), "total_frames": total_frames,
    }  # fmt: skip
    train.train(algorithm, settings(**common | changes | MORE.get(name, {})))


def killed_and_resumed(name, tmp_path, kills, total_frames):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cule.train", "test_kills"])
    whole, parts, chosen = tmp_path / "whole", tmp_path / "parts", random.Random(name)
    process = context.Process(target=run, args=(name, str(whole), total_frames))
    begun = time.monotonic()
    process.start()
    process.join()
    assert process.exitcode == 0
    long = time.monotonic() - begun
    killed = 0
    while killed < kills:
        process = context.Process(target=run, args=(name, str(parts), total_frames))
        process.start()
        process.join(chosen.uniform(0.2, 0.6) * long)
        if process.exitcode is not None:  # it was done before
            assert process.exitcode == 0
            if killed:
                break
            # The machine is less busy than it was: once more, and killed sooner.
            shutil.rmtree(parts)
            long /= 2
            continue
        process.kill()
        process.join()
        killed += 1
    process = context.Process(target=run, args=(name, str(parts), total_frames))
    process.start()
    process.join()
    assert process.exitcode == 0 and killed > 0
    assert_same(saved(parts), saved(whole))
    assert without_times(parts) == without_times(whole)
    assert saved(whole)["updates"] > 5


# The others are killed in the slow test below.
@pytest.mark.parametrize(
    "name", few(["PPO", "prioritized double DQN, n = 3"], ["prioritized double DQN, n = 3"])
)
def test_run_killed_twice_is_as_if_never_killed(name, tmp_path):
    killed_and_resumed(name, tmp_path, 2, 2400)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_run_killed_20_times_is_as_if_never_killed(name, tmp_path):
    """In several runs, as each ends after some kills."""
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        killed_and_resumed(name, folder, 4, 8000)
