"""On a GPU: captured and overlapped, training plays and learns what it would on the CPU, step by
step."""

from __future__ import annotations

import pytest
import torch

import cule
from examples.a2c_vtrace.arguments import Args
from examples.a2c_vtrace.learner import Learner
from examples.a2c_vtrace.model import ActorCritic
from examples.a2c_vtrace.rollout import Rollout
from examples.a2c_vtrace.trainer import Trainer
from examples.a2c_vtrace.world import World
from examples.dqn import dqn
from examples.ppo import ppo

pytestmark = pytest.mark.gpu

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")


def make_trainer(**changes):
    options = {
        "game": "breakout", "num_envs": 64, "num_batches": 4, "n_steps": 30, "steps_per_update": 1,
        "warmup_steps": 0,
        "width": 0.25, "life_loss_ends": True, "max_episode_frames": 80, **changes,
    }  # fmt: skip
    return Trainer(Args(**options).on(GPU), World(0, 1, GPU))


@pytest.mark.parametrize(
    "changes",
    [
        {"cuda_graphs": False},
        {},
        {"overlap": True},
        {"overlap": True, "steps_per_update": 3},
        {"channels_last": False},
    ],
    ids=str,
)
def test_trainer_plays_the_actions_that_it_keeps(changes):
    """With the stored actions, envs on the CPU give the stored frames."""
    trainer = make_trainer(**changes)
    while trainer.steps < 30:
        trainer.iterate()
    rollout = trainer.player.rollout
    actions, rewards = rollout.actions.cpu(), rollout.rewards.cpu()
    stacks = [
        rollout.frames.stacks(torch.tensor([t], device=GPU), rollout._envs).cpu() for t in range(31)
    ]
    env = cule.AtariEnv(
        "breakout", 64, device="cpu", life_loss_info=True, max_num_frames_per_episode=80
    )
    assert int(rollout.position) == trainer.steps == 30
    assert torch.equal(stacks[0], env.reset(seed=0)[0])
    for t in range(30):
        observations, wanted, *_ = env.step(actions[t])
        assert torch.equal(rewards[t], wanted.float())
        assert torch.equal(stacks[t + 1], observations)
    assert actions.unique().tolist() == [0, 1, 2, 3]
    trainer.close()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"overlap": True},
        {"overlap": True, "multiprocessors": 5},
        {"model": "impala"},
        {"compile": True},
    ],
    ids=str,
)
def test_trainer_gradient_is_that_of_the_cpu(changes):
    """Compares a captured gradient, of a later group, in float32."""
    trainer = make_trainer(bf16=False, n_steps=5, **changes)
    while trainer.updates < 10:
        trainer.iterate()
    learner = trainer.learner
    torch.cuda.synchronize()
    rollout = Rollout(64, 5, 1, CPU)
    rollout.load_state_dict(trainer.player.rollout.state_dict())
    args = trainer.args.on(CPU)
    model = ActorCritic(4, args.model, args.width)
    model.load_state_dict(learner.model.state_dict())
    on_cpu = Learner(model, rollout, args, 1)
    for name in ("group", "end"):
        getattr(on_cpu, name).copy_(getattr(learner, name))
    on_cpu.compute_gradient()
    trainer._compute_gradient()
    for ours, wanted in zip(learner.gradients, on_cpu.gradients, strict=True):
        torch.testing.assert_close(ours.cpu(), wanted, rtol=1e-2, atol=1e-4)
    assert on_cpu.gradient.norm() > 1e-3
    trainer.close()


@pytest.mark.parametrize(
    "changes",
    [{}, {"overlap": True, "optimizer": "rmsprop"}, {"anneal": True}, {"compile": True}],
    ids=str,
)
def test_trainer_updates_in_bfloat16(changes):
    trainer = make_trainer(n_steps=5, total_frames=64 * 4 * 100, **changes)
    before = [parameter.detach().clone() for parameter in trainer.learner.parameters]
    while trainer.updates < 40:
        trainer.iterate()
    for parameter, was, acting in zip(
        trainer.learner.parameters, before, trainer.policy.parameters(), strict=True
    ):
        assert torch.isfinite(parameter).all() and not torch.equal(parameter, was)
        assert acting.dtype == torch.bfloat16
        torch.testing.assert_close(acting.float(), parameter, rtol=1e-2, atol=1e-5)
    trainer.close()


def test_ppo_runs_on_the_gpu():
    row = ppo.train(
        ppo.Args(
            device="cuda",
            num_envs=64,
            n_steps=8,
            minibatch=128,
            width=0.25,
            total_frames=64 * 8 * 4 * 5,
            progress=False,
        )
    )
    assert row["updates"] == 5 * 3 * 4


@pytest.mark.parametrize("double", [False, True])
def test_dqn_runs_on_the_gpu(double):
    row = dqn.train(dqn.Args(
        device="cuda", num_envs=64, memory=6400, first_update=640, minibatch=128, width=0.25,
        double=double,
        total_frames=64 * 4 * 50, target_every=7, progress=False,
    ))  # fmt: skip
    assert row["updates"] == 41
