"""A recurrent policy by `declare`: its state is kept, cut at episodes' starts, learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete
from recurrent import Args, RecurrentA2C
from training_runs import assert_same, saved, scores_after, without_times

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.trainer import Trainer

CPU = torch.device("cpu")


class MemoryEnv:
    """The first observation of an episode says which of two actions pays in its third step.

    Observations are (num_envs, 3) float32. Episodes have three steps; resets are in NEXT_STEP mode.
    """

    def __init__(self, num_envs):
        self.num_envs, self.device = num_envs, CPU
        self.single_action_space = Discrete(2)

    def reset(self, *, seed):
        self.random = np.random.default_rng(seed)
        self.step_number = 0
        return self._first(), {}

    def _first(self):
        self.secret = torch.from_numpy(self.random.integers(2, size=self.num_envs))
        shown = torch.nn.functional.one_hot(self.secret, 3).float() * 255
        return shown

    def step(self, actions):
        zeros = torch.zeros(self.num_envs)
        self.step_number += 1
        if self.step_number == 4:  # this step only resets
            self.step_number = 0
            return self._first(), zeros, zeros.bool(), zeros.bool(), {}
        last = self.step_number == 3
        rewards = (actions == self.secret).float() * 2 - 1 if last else zeros
        blank = torch.zeros(self.num_envs, 3)
        return blank, rewards, torch.full((self.num_envs,), last), zeros.bool(), {}

    def close(self):
        pass


class Remembering(RecurrentA2C):
    """The same on MemoryEnv."""

    inputs = 3

    @classmethod
    def environment(cls, args, num_envs, device):
        return MemoryEnv(num_envs)


def make(algorithm=Remembering, **changes):
    args = Args(device="cpu", num_envs=32, num_threads=1, **changes).on(CPU)
    return Trainer(algorithm, args, ProcessGroup(0, 1, CPU))


@pytest.mark.parametrize("lag", [0, 1])
def test_recurrent_policy_remembers(lag):
    trainer = make(learning_rate=1e-2, lag=lag, total_frames=10**6, gamma=0.9)
    total, episodes = scores_after(trainer, 500, 100)
    # Without memory it is 0; 1 is the most.
    assert episodes > 100 and total / episodes > 0.8


def test_state_is_what_acting_had_also_where_episodes_start():
    """Unrolled again with the weights that acted, the steps have the same log-probabilities."""
    trainer = make(learning_rate=0.0, num_steps=6)
    told = []
    for _ in range(6):
        trainer.iterate()
        told.append(trainer.learner.take_metrics()[trainer.learner.names.index("difference")])
    assert max(told) < 1e-5
    # The test can fail: with another state it would not be so.
    trainer = make(learning_rate=0.0, num_steps=6)
    for recurrent, store in trainer.plan.storage.far.items():
        if recurrent.name == "state":
            take = store.take
            store.take = lambda slots, envs, take=take: take(slots, envs) + 1.0
    trainer.iterate()
    trainer.iterate()
    names = trainer.learner.names
    assert trainer.learner.take_metrics()[names.index("difference")] > 1e-3


def test_state_needs_no_more_memory_than_is_read():
    plan = make(num_steps=7).plan
    kept = {recurrent.name: how.length for recurrent, how in plan.memory.allocations.items()}
    assert kept["state"] == kept["observations"] == 8


def test_recurrent_run_that_is_resumed_is_as_if_never_stopped(tmp_path):
    asked = {
        "device": "cpu", "num_envs": 4, "num_threads": 1, "game": "breakout", "eval_episodes": 0,
        "progress": False, "plot": False, "logger": "none", "max_episode_frames": 150,
        "resume": True, "log_every": 5,
    }  # fmt: skip
    whole, parts = tmp_path / "whole", tmp_path / "parts"

    def run(folder: Path, frames: int):
        train.train(RecurrentA2C, Args(**asked, folder=folder, total_frames=frames))

    run(whole, 3000)
    run(parts, 1400)
    run(parts, 3000)
    assert_same(saved(parts), saved(whole))
    assert without_times(parts) == without_times(whole)
