"""Settings by device, and the line that is printed before training."""

from __future__ import annotations

import dataclasses
import re

import pytest
import torch
import tyro

from cule import train
from cule.devices import device as devices
from cule.train import presets
from cule.train.distributed.process_group import ProcessGroup
from cule.train.logs import progress
from cule.train.logs.log import Log
from cule.train.trainer import Trainer
from examples.a2c_vtrace import train as a2c
from examples.dqn import dqn
from examples.ppo import ppo
from examples.pqn import pqn
from examples.rainbow import btr, rainbow
from examples.reinforce import reinforce
from tests.support.marks import few

CPU, GPU = torch.device("cpu"), torch.device("cuda")
ALL = [a2c.Args, ppo.Args, dqn.Args, pqn.Args, reinforce.Args, rainbow.Args, btr.Args]
TINY = {"device": "cpu", "width": 0.1, "num_threads": 1}
PROGRAMS = {
    "a2c_vtrace": (a2c.A2C, a2c.Args, {"warmup_steps": 30}),
    "ppo": (ppo.PPO, ppo.Args, {}),
    "dqn": (dqn.DQN, dqn.Args, {"first_update": 600}),
    "pqn": (pqn.PQN, pqn.Args, {}),
    "reinforce": (reinforce.Reinforce, reinforce.Args, {}),
    "rainbow": (rainbow.Rainbow, rainbow.Args, {"first_update": 600}),
    "btr": (btr.BTR, btr.Args, {"first_update": 600}),
}


@pytest.mark.parametrize("settings", ALL)
def test_presets_are_what_the_help_says(settings, monkeypatch, capsys):
    """The help texts below the fields name both defaults."""
    monkeypatch.setattr("sys.argv", ["train", "--help"])
    with pytest.raises(SystemExit):
        tyro.cli(settings)
    told = re.sub(r"[│\s]", "", capsys.readouterr().out)
    for field in presets.open_settings(settings()):
        gpu, cpu = field.metadata["cuda"], field.metadata["cpu"]
        kind = "INT" if isinstance(gpu, int) else "FLOAT"
        option = f"--{field.name.replace('_', '-')}{{None}}|{kind}"
        text = told.partition(option)[2].partition("(default:None)")[0]
        assert f"({gpu:,}onaGPU,{cpu:,}onaCPU)" in text, field.name


@pytest.mark.parametrize("settings", ALL)
def test_presets_leave_nothing_open_and_what_was_set_in_force(settings):
    """This is so on a GPU and on a CPU."""
    some = dataclasses.replace(settings(), num_envs=8)
    open_names = {field.name for field in presets.open_settings(some)}
    assert "total_frames" in open_names and "num_envs" not in open_names
    for device in (CPU, GPU):
        full = presets.filled(some, device)
        assert presets.open_settings(full) == [] and full.num_envs == 8
        for field in dataclasses.fields(settings):
            if field.name in open_names:
                assert getattr(full, field.name) == field.metadata[device.type]


@pytest.mark.parametrize("settings", ALL)
def test_presets_fit_each_other(settings):
    """A program starts with the device's settings alone: they pass its own checks."""
    make = {settings: algorithm for algorithm, settings, _ in PROGRAMS.values()}[settings]
    args = dataclasses.replace(settings(), width=0.1, num_threads=1).on(CPU)
    args.check(1)
    Trainer(make, args, ProcessGroup(0, 1, CPU)).close()


@pytest.mark.parametrize("program", few(PROGRAMS, ("ppo", "dqn")))
def test_training_says_at_once_what_it_does(program, tmp_path, monkeypatch, capsys):
    """The first line comes before any env is made; the bar moves before the first update."""
    algorithm, settings, more = PROGRAMS[program]
    quiet = {"folder": tmp_path, "plot": False, "logger": "none", "eval_episodes": 0}
    args = settings(**TINY, **more, **quiet, total_frames=3000)
    told = []

    def make_env(*_, **__):
        told.append(capsys.readouterr().err)
        raise ValueError("no env")

    with monkeypatch.context() as patch:
        patch.setattr("cule.train.envs.collector.make_env", make_env)
        with pytest.raises(ValueError, match="no env"):
            train.train(algorithm, args)
    first = told[0].splitlines()[0]
    threads = torch.get_num_threads()
    where = rf"on the CPU \({threads} thread{'s' * (threads > 1)}\)"
    assert re.match(rf"Training .+ on pong, {where}\. Chosen for a CPU: ", first)
    assert "--num-envs " in first and "--total-frames" not in first

    seen = []
    reach = progress.Progress.reach

    def watched(self, frames, phase=""):
        seen.append((frames, phase))
        reach(self, frames, phase)

    monkeypatch.setattr(progress.Progress, "reach", watched)
    few = dataclasses.replace(args, num_envs=20 if program == "a2c_vtrace" else 16)
    row = train.train(algorithm, few)
    before = "warming up" if program in ("a2c_vtrace", "dqn", "rainbow", "btr") else ""
    assert seen[0] == (4 * row["num_envs"], before)
    assert seen[-1] == (row["frames"], "")
    assert f"pong, {before}" in capsys.readouterr().err or not before


def test_progress_tells_frames_and_when_it_ends(capsys):
    bar = progress.Progress("pong", 1000, shown=True)
    bar.reach(250, "warming up")
    bar.refresh()
    told = capsys.readouterr().err
    assert re.search(r"pong, warming up:  25%.* 250/1.00k \[\d\d:\d\d<\d\d:\d\d, .*frame/s\]", told)
    bar.reach(500)
    bar.show_values({"score": -20.5, "fps": None})
    assert re.search(r"pong:  50%.* 500/1.00k \[.*, score=-20.5\]", capsys.readouterr().err)
    bar.close()


def test_bar_has_what_unfinished_episodes_scored_until_one_has_ended(tmp_path, capsys):
    args = train.Args(folder=tmp_path, total_frames=1000, logger="none")
    log = Log(args, 0, 0, 0, speak=True)
    log.write("training", 100, {"score": None, "score_so_far": 1.25})
    assert ", score so far=1.25]" in capsys.readouterr().err
    log.write("training", 200, {"score": 7.0, "score_so_far": 2.5})
    log.write("training", 300, {"score": None, "score_so_far": 3.5})
    told = capsys.readouterr().err
    assert ", score=7]" in told and "so far" not in told
    log.close()


def test_torch_computes_with_half_of_the_cpus_unless_told(monkeypatch):
    """It takes no more than it would by itself, such as one where OMP_NUM_THREADS is 1."""
    threads = [8]
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    for cpus, given, before, wanted in (
        (1, 0, 8, 1), (2, 0, 8, 1), (8, 0, 8, 4), (8, 0, 1, 1), (2, 6, 1, 6),
    ):  # fmt: skip
        monkeypatch.setattr(devices, "usable_cpus", lambda cpus=cpus: cpus)
        threads.append(before)
        train.Args(num_threads=given).use_threads()
        assert threads[-1] == wanted


def test_resumed_run_says_from_where(tmp_path, capsys):
    args = a2c.Args(
        **TINY, folder=tmp_path, num_envs=20, warmup_steps=0, total_frames=2000, eval_episodes=0,
        logger="none", plot=False, resume=True,
    )  # fmt: skip
    told = []
    for frames in (2000, 3000, 3000):
        row = train.train(a2c.A2C, dataclasses.replace(args, total_frames=frames))
        told.append(capsys.readouterr().err)
    folder = tmp_path / "checkpoints"
    assert f"There is no checkpoint in {folder}: a new run begins." in told[0]
    assert f"Going on from the checkpoint in {folder}, after 2,000 frames and " in told[1]
    ended = f"after {row['frames']:,} frames and {row['seconds']:,.1f} seconds of training"
    assert f"The run in {tmp_path} ended {ended}: nothing is left to train." in told[2]


def test_run_that_goes_on_keeps_what_the_machine_chose(tmp_path):
    """This holds if another machine would choose otherwise, and if the run is made longer."""
    args = a2c.Args(
        **TINY, folder=tmp_path, num_envs=20, warmup_steps=0, total_frames=2000, eval_episodes=0,
        progress=False, logger="none", plot=False,
    )  # fmt: skip
    train.train(a2c.A2C, args)
    again = dataclasses.replace(args, num_envs=None, total_frames=None, resume=True)
    assert train.train(a2c.A2C, again)["frames"] == 2000
    row = train.train(a2c.A2C, dataclasses.replace(again, total_frames=3000))
    assert (row["num_envs"], row["frames"]) == (20, 3040)
