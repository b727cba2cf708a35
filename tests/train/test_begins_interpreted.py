"""Training begins while its game is compiled, and changes over: results stay the same."""

from __future__ import annotations

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
        (A2C, Args, {"num_batches": 4, "warmup_steps": 0, "lag": 1}),
        (ppo.PPO, ppo.Args, {"num_steps": 16, "minibatch_size": 256}),
        (dqn.DQN, dqn.Args, {"buffer_size": 20_000, "learning_starts": 2_000}),
    ],
)
def test_on_a_gpu_graphs_change_over(algorithm, made, options, monkeypatch):
    """With the game's own kernel, which comes when the test says so."""
    gpu, let, compiled = torch.device("cuda", 0), threading.Event(), translation.translate

    def late(*args, **named):
        assert let.wait(SECONDS)
        return compiled(*args, **named)

    def trainer(translated):
        args = made(
            game="breakout", num_envs=64, width=0.25, deterministic=True, num_threads=1,
            **options,
        ).on(gpu)  # fmt: skip
        return Trainer(algorithm, args, ProcessGroup(0, 1, gpu), translated=translated)

    def play(one, iterations):
        for _ in range(iterations):
            one.iterate()
        torch.cuda.synchronize()

    whole = trainer(True)
    assert whole.collector.env.translated
    with monkeypatch.context() as context:
        context.setattr(translation, "translate", late)
        begins = trainer(False)
        play(begins, 12)
        assert not begins.collector.env.translated and begins.updates > 0
        let.set()
        begins.collector.wait_until_translated()
    begins.plan.free_graphs()
    play(begins, 12)
    assert begins.collector.env.translated
    play(whole, 24)
    assert_same(begins.state_dict(), whole.state_dict())
    for one in (begins, whole):
        one.close()
