"""A row's command measures its case again."""

from __future__ import annotations

import shlex
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
import torch
import tyro
from training_runs import settings, trained

from cule.programs.results import command_line
from cule.train.algorithm import Context
from cule.train.command import options_of
from cule.train.logs import repeat
from examples.a2c_vtrace.train import A2C, Args
from examples.dqn.dqn import DQN
from examples.dqn.dqn import Args as DQNArgs

PONG = Context(torch.device("cpu"), num_actions=6)


@pytest.fixture
def started(monkeypatch):
    """Lets the process seem to be one that was started in some way."""

    def start(*words, file=None, module=None, **environment):
        main = ModuleType("__main__")
        main.__spec__ = module and ModuleSpec(module, None)
        if file is not None:
            main.__file__ = str(file)
        monkeypatch.setitem(sys.modules, "__main__", main)
        monkeypatch.setattr(sys, "orig_argv", ["/usr/bin/python3", *words])
        for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "CUDA_MPS_PIPE_DIRECTORY"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return start


@pytest.mark.parametrize(
    ("environment", "start"),
    [
        ({}, "python"),
        ({"WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}, "python"),
        ({"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}, "torchrun --nproc-per-node 4"),
        ({"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}, "torchrun --nnodes 2 --nproc-per-node 4"),
        ({"WORLD_SIZE": "2"}, "torchrun --nproc-per-node 2"),
        (
            {"WORLD_SIZE": "2", "CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps"},
            "python -m cule.train.mps -- torchrun --nproc-per-node 2",
        ),
    ],
    ids=str,
)
def test_command_starts_as_many_processes(started, environment, start):
    words = ("-u", "-X", "dev", "-m", "examples.ppo.ppo", "--folder", "a b")
    started(*words, module="examples.ppo.ppo", **environment)
    assert command_line() == f"{start} -m examples.ppo.ppo --folder 'a b'"
    started("-Werror", "here/own.py", "-m", "1", file=Path(__file__), **environment)
    assert command_line() == f"{start} here/own.py -m 1"


def test_command_is_that_of_the_whole_process(started):
    started("-um", "cule.scope", "run", "--", "own.py", file=Path(__file__))
    assert command_line() == "python -m cule.scope run -- own.py"


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["-c", "print()"], {}),
        (["-uc", "import runpy; ..."], {"module": "examples.ppo.ppo"}),
        (["-m", "ipykernel_launcher", "-f", "kernel.json"], {}),
        (["-", "word"], {"file": "<stdin>"}),
        ([], {}),
    ],
    ids=["-c", "module in -c", "notebook", "stdin", "interactive"],
)
def test_command_that_nothing_can_repeat_is_none(started, words, where):
    started(*words, **where)
    assert command_line() is None


def test_training_in_such_a_process_has_the_command_of_its_settings(started, tmp_path):
    started("-c")
    row = trained(settings(tmp_path / "run", total_frames=200, max_grad_norm=None))
    start, *words = shlex.split(row["command"])
    assert (start, words[:2]) == ("python", ["-m", "examples.a2c_vtrace.train"])
    again = tyro.cli(Args, args=words[2:])
    wanted = settings(tmp_path / "run", total_frames=200, max_grad_norm=None)
    assert again == wanted.on(torch.device("cpu"))


def test_settings_that_were_tuned_are_in_the_command_themselves(started):
    started("-c")
    command = repeat.command_of(DQN(DQNArgs(tuned=True, num_envs=24, double=True), PONG))
    assert command == "python -m examples.dqn.dqn --num-envs 24 --double"


def test_algorithm_in_no_program_has_no_command(started):
    started("-c")

    class Own(A2C):
        """Of a module that is no program."""

    assert repeat.command_of(Own(Args(), PONG)) is None
    Own.__module__ = A2C.__module__  # but it is not what that program trains
    assert repeat.command_of(Own(Args(), PONG)) is None


def test_tuple_is_several_words_of_a_command():
    assert options_of({"sticky": (0.0, 0.25), "max_grad_norm": None}) == [
        "--sticky", "0.0", "0.25", "--max-grad-norm", "None",
    ]  # fmt: skip
