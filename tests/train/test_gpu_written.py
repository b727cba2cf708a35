"""On a GPU: algorithms of a page learn the same from captured graphs as operation by operation."""

from __future__ import annotations

import continuous
import pytest
from on_atari import WRITTEN
from training_runs import assert_same, saved
from walker import Corridor, Walker

from cule import train
from examples.dqn import dqn
from examples.ppo import ppo
from examples.reinforce import reinforce

pytestmark = pytest.mark.gpu

EACH = {
    "game": "breakout", "device": "cuda", "num_envs": 32, "max_episode_frames": 60,
    "deterministic": True, "eval_episodes": 0, "progress": False, "plot": False,
    "logger": "none", "learning_rate": 1e-3,
}  # fmt: skip
DQN = {"memory": 3200, "first_update": 320, "minibatch_size": 32, "width": 0.25}
KINDS = {
    "n-step": (dqn.DQN, dqn.Args, {**DQN, "n_step": 3}),
    "prioritized": (dqn.DQN, dqn.Args, {**DQN, "prioritized": True}),
    "prioritized n-step double": (
        dqn.DQN, dqn.Args, {**DQN, "prioritized": True, "n_step": 3, "double": True},
    ),
    "prioritized lag": (dqn.DQN, dqn.Args, {**DQN, "prioritized": True, "lag": 1}),
    **WRITTEN,
    "beside": (reinforce.Reinforce, reinforce.Args, {"num_steps": 16, "n_step": 4, "width": 0.25}),
    "beside apart": (
        reinforce.Reinforce, reinforce.Args,
        {"num_steps": 16, "n_step": 4, "width": 0.25, "layout": "apart:64"},
    ),
    "memory": (
        ppo.PPO, ppo.Args,
        {"num_steps": 8, "minibatch_size": 64, "model": "lstm", "width": 0.25},
    ),
    # It has a learning rate of its own.
    "vectors as actions": (continuous.SAC, continuous.Args, {"n_step": 3, "learning_rate": 2.5e-4}),
    "lag": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 64, "lag": 1, "width": 0.25}),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_captured_it_learns_the_same(name, tmp_path):
    algorithm, settings, changes = KINDS[name]
    for folder, captured in (("one", False), ("graphs", True), ("again", True)):
        args = settings(
            **{**EACH, **changes}, cuda_graphs=captured, folder=tmp_path / folder,
            total_frames=32 * 4 * 96,
        )  # fmt: skip
        row = train.train(algorithm, args)
        assert row["updates"] > 5
    assert_same(saved(tmp_path / "graphs"), saved(tmp_path / "again"))
    assert_same(saved(tmp_path / "one"), saved(tmp_path / "graphs"))


class OnGpu(Corridor):
    """Takes and returns tensors on the GPU."""

    def reset(self, *, seed):
        return super().reset(seed=seed)[0].cuda(), {}

    def step(self, actions):
        assert actions.is_cuda
        *results, infos = super().step(actions.cpu())
        return *(result.cuda() for result in results), infos


class OnCpu(Corridor):
    """Takes and returns tensors on the CPU, whatever learns."""

    def step(self, actions):
        assert actions.device.type == "cpu"
        return super().step(actions)


def test_envs_on_the_cpu_are_trained_on_a_gpu(tmp_path):
    for kind in (OnGpu, OnCpu):
        made = classmethod(lambda cls, args, num_envs, device, kind=kind: kind(num_envs))
        args = train.Args(
            device="cuda", num_envs=8, total_frames=8 * 4 * 96, folder=tmp_path / kind.__name__,
            deterministic=True, progress=False, plot=False, logger="none", eval_episodes=0,
        )  # fmt: skip
        assert train.train(type("Walks", (Walker,), {"environment": made}), args)["updates"] > 5
    assert_same(saved(tmp_path / "OnGpu"), saved(tmp_path / "OnCpu"))
