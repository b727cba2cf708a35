"""Training begins while its game is compiled, and changes over: results stay the same."""

from __future__ import annotations

import copy
import threading

import pytest
import torch
from training_runs import SMALL, WORLD, assert_same, saved, settings, trained

from cule import translation
from cule.train.distributed.process_group import ProcessGroup
from cule.train.plan.plan import Plan
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C, Args
from examples.dqn import dqn
from examples.ppo import ppo
from tests.env.stand_in_compiler import SECONDS, join_threads, stand_in

FRAMES = {"total_frames": 8 * 4 * 40, "log_every": 2}


@pytest.fixture
def compiler(monkeypatch):
    made = stand_in(monkeypatch)
    yield made
    made.finish()


def test_a_run_learns_before_its_game_is_compiled_and_changes_over(tmp_path, compiler, monkeypatch):
    compiler.first, envs, told = b"a first kernel", [], []
    free, update = Plan.free_graphs, Trainer.iterate

    def iterate(trainer, *args):
        env = trainer.collector.env
        loaded = list(env.engine.backend.loaded)
        if trainer.updates == 4:
            compiler.let.set()
            join_threads()
        if trainer.updates == 10:
            compiler.finish()
        update(trainer, *args)
        told.append((trainer.updates, len(loaded)))

    monkeypatch.setattr(Trainer, "iterate", iterate)
    monkeypatch.setattr(Plan, "free_graphs", lambda plan: (envs.append(plan.steps), free(plan)))
    trained(settings(tmp_path / "begins", **FRAMES))
    kernels = dict(told)
    assert kernels[min(kernels)] == 0, "the first update does not wait"
    assert kernels[max(kernels)] == 2, "both kernels were loaded in the run"
    # Graphs are captured again at the next line of the log; the last time is the end.
    assert len(envs) == 3
    monkeypatch.undo()
    trained(settings(tmp_path / "plain", **FRAMES))
    assert_same(saved(tmp_path / "begins"), saved(tmp_path / "plain"))


def test_a_kernel_that_is_there_is_loaded_before_the_first_step(tmp_path, compiler, monkeypatch):
    compiler.let.set()
    compiler.let_whole.set()
    update, told = Trainer.iterate, []

    def iterate(trainer, *args):
        told.append(list(trainer.collector.env.engine.backend.loaded))
        update(trainer, *args)

    monkeypatch.setattr(Trainer, "iterate", iterate)
    trained(settings(tmp_path, **FRAMES))
    assert told[0] == told[-1] == [b"a kernel"]


def test_a_trainer_by_itself_waits(compiler):
    threading.Timer(0.3, compiler.finish).start()
    args = Args(**SMALL).on(torch.device("cpu"))
    trainer = Trainer(A2C, args, WORLD)
    assert trainer.collector.env.translated
    trainer.close()


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("algorithm", "made", "options"),
    [
        (A2C, Args, {"num_batches": 4, "num_steps": 4, "steps_per_update": 1, "warmup_steps": 0}),
        (ppo.PPO, ppo.Args, {"num_steps": 16, "minibatch_size": 256, "lag": 1}),
        (dqn.DQN, dqn.Args, {"memory": 6400, "first_update": 640, "minibatch_size": 32}),
    ],
    ids=["A2C", "PPO", "DQN"],
)
def test_on_a_gpu_graphs_change_over(algorithm, made, options, monkeypatch):
    """With the game's own kernel, which comes when the test says so."""
    gpu, compiled, states = torch.device("cuda", 0), translation.translate, []
    args = made(
        game="breakout", num_envs=64, width=0.25, deterministic=True, num_threads=1, **options
    ).on(gpu)  # fmt: skip
    for late in (False, True):
        let = threading.Event()

        def translate(*given, let=let):
            assert let.wait(SECONDS)
            return compiled(*given)

        monkeypatch.setattr(translation, "translate", translate if late else compiled)
        trainer = Trainer(algorithm, args, ProcessGroup(0, 1, gpu), translated=not late)
        for iteration in range(60):
            if iteration == 40:
                assert trainer.collector.env.translated == (not late) and trainer.updates > 0
                let.set()
                trainer.collector.wait_until_translated()
                trainer.plan.free_graphs()
            trainer.iterate()
        assert trainer.collector.env.translated
        states.append(copy.deepcopy(trainer.state_dict()))
        trainer.close()
    assert_same(*states)
