"""On a GPU: captured and with branches, training plays and learns what it would on the CPU."""

from __future__ import annotations

import itertools
import threading

import pytest
import torch
from training_runs import assert_same, saved

import cule
from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.sm_autotuner import SmAutotuner, Way
from cule.train.evaluate.evaluator import Evaluator
from cule.train.evaluate.policy import Policy
from cule.train.layout import Layout
from cule.train.plan.execution import Step
from cule.train.plan.graphs import CudaStreams
from cule.train.plan.memory import GIB
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C, Args
from examples.dqn import dqn
from examples.ppo import ppo
from examples.pqn import pqn
from examples.rainbow import btr, rainbow
from examples.reinforce import reinforce

pytestmark = pytest.mark.gpu

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
OPTIONS = {
    "game": "breakout", "num_envs": 64, "num_batches": 4, "num_steps": 30, "steps_per_update": 1,
    "warmup_steps": 0, "width": 0.25, "life_loss_ends": True, "max_episode_frames": 80,
}  # fmt: skip


def make_trainer(device=GPU, **changes):
    args = Args(**{**OPTIONS, **changes}).on(device)
    return Trainer(A2C, args, ProcessGroup(0, 1, device, Layout.parse(args.layout)))


def least_budget(trainer):
    """GiB that are too few for all frames."""
    memory = trainer.plan.memory
    works = [o.work for o in trainer.plan.program.operations if o.work is not None]
    least = sum(work.least_bytes for work in works)
    return (memory.fixed + 0.75 * memory.ring_bytes + least) / GIB


@pytest.mark.parametrize(
    "changes",
    [
        {"cuda_graphs": False},
        {},
        {"lag": 1},
        {"lag": 1, "steps_per_update": 3},
        {"lag": 1, "layout": "apart:64"},
        {"channels_last": False},
        {"swapped": True},
        {"swapped": True, "lag": 1},
    ],
    ids=str,
)
def test_trainer_plays_the_actions_that_it_keeps(changes):
    """The frames kept are those that the CPU's envs give for the actions kept."""
    swapped = changes.pop("swapped", False)
    trainer = make_trainer(**changes)
    if swapped:
        budget = least_budget(trainer)
        trainer.close()
        trainer = make_trainer(memory_budget=budget, **changes)
        assert any("on the host" in line for line in trainer.plan.memory.notes)
    while trainer.steps < 30:
        trainer.iterate()
    store = trainer.plan.storage.far
    frames, kept = store[trainer.lowered.observation], trainer.lowered.stored
    actions, rewards = store[kept["actions"]].values.cpu(), store[kept["rewards"]].values.cpu()
    envs = torch.arange(64, device=GPU)
    stacks = [frames.take(torch.tensor([t], device=GPU), envs).cpu() for t in range(31)]
    env = cule.AtariEnv(
        "breakout", 64, device="cpu", life_loss_info=True, max_num_frames_per_episode=80
    )
    assert trainer.steps == 30
    assert torch.equal(stacks[0], env.reset(seed=0)[0])
    for t in range(30):
        observations, wanted, *_ = env.step(actions[t])
        assert torch.equal(rewards[t], wanted.float())
        assert torch.equal(stacks[t + 1], observations)
    assert actions[:30].unique().tolist() == [0, 1, 2, 3]
    trainer.close()


@pytest.fixture
def float32():
    """No TF32, which a training of an earlier test in this process may have allowed."""
    # monkeypatch cannot restore what is no attribute of the module itself.
    modules = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [module.allow_tf32 for module in modules]
    for module in modules:
        module.allow_tf32 = False
    yield
    for module, allowed in zip(modules, before, strict=True):
        module.allow_tf32 = allowed


def gradient_of(trainer):
    """Computes the next gradient."""
    for executor in trainer.plan.executors:
        for operation in executor.group.operations:
            if operation.name == "gradient":
                executor.make(Step(0, 0, ((operation, ((0, 0),)),)))
    return trainer.nets.weights.gradients


def flat(tensors):
    return torch.cat([tensor.detach().double().cpu().flatten() for tensor in tensors])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lag": 1},
        {"lag": 1, "multiprocessors": 5},
        {"model": "impala"},
        {"compile": True},
    ],
    ids=str,
)
@pytest.mark.usefixtures("float32")
def test_trainer_gradient_is_that_of_the_cpu(changes):
    """A gradient of a later group, in float32, after captured iterations."""
    trainer = make_trainer(bf16=False, num_steps=5, **changes)
    while trainer.updates < 10:
        trainer.iterate()
    torch.cuda.synchronize()
    on_cpu = make_trainer(CPU, num_steps=5, **{**changes, "compile": False, "multiprocessors": 0})
    state = trainer.plan.storage.state_dict()
    on_cpu.plan.storage.load_state_dict(state)
    on_cpu.nets.trained["net"].load_state_dict(trainer.nets.trained["net"].state_dict())
    on_cpu.learner.turn.copy_(trainer.learner.turn)
    for executor, its in zip(on_cpu.plan.executors, trainer.plan.executors, strict=True):
        executor.clock.t.copy_(its.clock.t)
        assert int(its.clock.t) == trainer.steps
    wanted, found = flat(gradient_of(on_cpu)), flat(gradient_of(trainer))
    assert wanted.norm() > 1e-4
    assert (found - wanted).norm() < 1e-3 * wanted.norm()
    trainer.close()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lag": 1, "optimizer": "rmsprop"},
        {"lag": 1, "optimizer": "muon"},
        {"anneal_lr": True, "anneal_ent": True},
        {"compile": True},
    ],
    ids=str,
)
def test_trainer_updates_in_bfloat16(changes):
    trainer = make_trainer(num_steps=5, total_frames=64 * 4 * 100, **changes)
    parameters = trainer.nets.weights.parameters
    before = [parameter.detach().clone() for parameter in parameters]
    while trainer.updates < 40:
        trainer.iterate()
    for parameter, was, acting in zip(
        parameters, before, trainer.acting.net.parameters(), strict=True
    ):
        assert torch.isfinite(parameter).all() and not torch.equal(parameter, was)
        assert acting.dtype == (torch.bfloat16 if acting.dim() > 1 else torch.float32)
        assert torch.equal(acting, parameter.to(acting.dtype))
    trainer.close()


FEW = {"device": "cuda", "num_envs": 64, "width": 0.25, "progress": False, "plot": False,
       "logger": "none", "eval_episodes": 0}  # fmt: skip
ALL = {
    "ppo": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 128}, 3 * 4),
    "dqn": (dqn.DQN, dqn.Args, {"memory": 6400, "first_update": 640, "target_every": 7}, None),
    "double dqn": (
        dqn.DQN, dqn.Args,
        {"memory": 6400, "first_update": 640, "target_every": 7, "double": True}, None,
    ),
    "ppo lstm": (
        ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 128, "model": "lstm"}, 3 * 4,
    ),
    "pqn": (pqn.PQN, pqn.Args, {"num_steps": 8, "minibatch_size": 128}, 2 * 4),
    "pqn lstm": (
        pqn.PQN, pqn.Args, {"num_steps": 8, "minibatch_size": 128, "model": "lstm"}, 2 * 4,
    ),
    "reinforce": (reinforce.Reinforce, reinforce.Args, {"num_steps": 8}, 1),
    "rainbow": (
        rainbow.Rainbow, rainbow.Args, {"memory": 6400, "first_update": 640, "target_every": 7},
        None,
    ),
    "btr": (btr.BTR, btr.Args, {"memory": 6400, "first_update": 640, "target_every": 7}, None),
    "n-step": (reinforce.Reinforce, reinforce.Args, {"num_steps": 8, "n_step": 2}, 1),
}  # fmt: skip


# Each with and without a lag; n-step returns are learned from beside playing without one.
WITH_LAGS = [(name, lag) for name in ALL for lag in (0, 1) if (name, lag) != ("n-step", 1)]


@pytest.mark.parametrize(("name", "lag"), WITH_LAGS)
def test_algorithms_run_on_the_gpu(name, lag, tmp_path):
    algorithm, settings, changes, each = ALL[name]
    args = settings(**FEW, **changes, lag=lag, folder=tmp_path, total_frames=64 * 8 * 4 * 10)
    row = train.train(algorithm, args)
    assert row["updates"] == each * (10 - lag) if each else row["updates"] > 5


def test_run_on_the_gpu_goes_on_from_its_checkpoint(tmp_path):
    algorithm, settings, changes, _ = ALL["ppo"]
    args = {**FEW, **changes, "anneal_lr": False, "resume": True, "deterministic": True}
    for folder, phases in (("parts", 8), ("parts", 12), ("whole", 12)):
        frames = 64 * 8 * 4 * phases
        row = train.train(
            algorithm, settings(**args, folder=tmp_path / folder, total_frames=frames)
        )
        assert row["updates"] == phases * 3 * 4
    assert_same(saved(tmp_path / "parts"), saved(tmp_path / "whole"))


def test_training_is_the_same_on_any_number_of_multiprocessors(tmp_path, monkeypatch):
    ways = itertools.cycle(
        [Way(33, ordered=True), Way(115, ordered=False), Way(66, ordered=False),
         Way(49, ordered=True)]
    )  # fmt: skip
    for folder, changes in (("half", False), ("all", True)):
        taken = []

        def observe(autotuner, frames, seconds, changes=changes, taken=taken):
            if not changes:
                return None
            autotuner.way = next(ways)
            taken.append(autotuner.way)
            return autotuner.way

        monkeypatch.setattr(SmAutotuner, "observe", observe)
        args = Args(
            **{**OPTIONS, **FEW, "num_envs": 1280}, lag=1, folder=tmp_path / folder,
            deterministic=True, total_frames=1280 * 4 * 30 * 8, log_every=30,
        )  # fmt: skip
        row = train.train(A2C, args)
        last = taken[-1] if changes else Way(66, ordered=True)
        assert (row["multiprocessors"], row["ordered"]) == last
        assert len(set(taken)) == (4 if changes else 0)
    assert_same(saved(tmp_path / "half"), saved(tmp_path / "all"))


@pytest.mark.parametrize("lag", [0, 1])
def test_training_is_the_same_if_graphs_are_captured_again(lag, tmp_path, monkeypatch):
    captured = []
    capture = CudaStreams.capture
    monkeypatch.setattr(CudaStreams, "capture", lambda *them: captured.append(1) or capture(*them))
    counts = []
    for folder, again in (("once", False), ("often", True)):
        monkeypatch.setattr(cule.AtariEnv, "translate_again", lambda env, look, again=again: again)
        captured.clear()
        args = Args(
            **{**OPTIONS, **FEW, "lag": lag}, folder=tmp_path / folder, deterministic=True,
            total_frames=64 * 4 * 30 * 12, log_every=60,
        )  # fmt: skip
        train.train(A2C, args)
        counts.append(len(captured))
    assert counts[1] > counts[0] > 0
    assert_same(saved(tmp_path / "once"), saved(tmp_path / "often"))


def test_an_evaluation_asks_the_policy_for_one_size_of_batch_in_one_thread():
    asked = set()

    def policy(observations):
        asked.add((tuple(observations.shape), observations.device.type, threading.get_ident()))
        return torch.zeros(len(observations), 4, device=GPU).log_softmax(1)

    evaluator = Evaluator("breakout", 6, GPU, emulator="cule", sticky=0.0, max_frames=3000)
    try:
        first, second, other = (evaluator.scores(Policy(policy), seed) for seed in (0, 0, 1))
    finally:
        evaluator.close()
    assert (first == second).all() and (first != other).any()
    [(shape, where, _)] = asked
    assert (shape, where) == ((6, 4, 84, 84), "cuda")


@pytest.mark.parametrize(("name", "lag"), [("a2c", 0), ("a2c", 1), *WITH_LAGS])
def test_the_loop_neither_allocates_nor_waits_for_the_gpu(name, lag):
    algorithm, settings, changes, _ = ALL.get(name, (A2C, Args, {"num_batches": 4}, None))
    args = settings(**FEW, **changes, lag=lag, total_frames=10**9).on(GPU)
    trainer = Trainer(algorithm, args, ProcessGroup(0, 1, GPU))
    while trainer.updates < 100 or trainer.steps < 400:
        trainer.iterate()
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(20):
            trainer.iterate()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    trainer.close()
