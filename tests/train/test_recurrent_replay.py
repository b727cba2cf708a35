"""Sequences of a replay memory with stored recurrent states, as in R2D2 (Kapturowski et al., 2019).

A class as a user would write it, and what its batches have to be.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest
import torch
from test_recurrent import MemoryEnv
from torch import nn
from training_runs import assert_same, scores_after, state_after

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn import draws
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
MEMORY, ENVS = 16 * 60, 16


class Net(nn.Module):
    """Values of actions on a GRU."""

    def __init__(self, num_actions, size):
        super().__init__()
        self.encode, self.cell = nn.Linear(3, size), nn.GRUCell(size, size)
        self.values = nn.Linear(size, num_actions)

    def forward(self, observations, state, started):
        state = state * (~started).float().unsqueeze(1)
        state = self.cell(self.encode(observations / 255).tanh(), state)
        return self.values(state), state


@dataclass
class Args(train.Args):
    """Settings."""

    size: int = 16
    burn_in: int = 2
    sequence: int = 8


class R2D2(train.Algorithm[Args]):
    """Double Q-learning from sequences with stored states; priorities by the largest error."""

    @classmethod
    def environment(cls, args, num_envs, device):
        return MemoryEnv(num_envs)

    def networks(self, num_actions):
        return {"q": Net(num_actions, self.args.size), "target": train.Copy(of="q", every=20)}

    def schedules(self):
        return {"epsilon": lambda frames: max(0.05, 1 - frames / 30_000)}

    def learning(self):
        replay = train.Replay(
            MEMORY, 16, sequence=self.args.sequence, prioritized=train.Prioritized(alpha=0.9)
        )
        return train.Learning(replay=replay, every=2, start=20)

    def declare(self, d):
        steps, t = self.learning().replay.steps(d.num_envs), d.t
        state = d.recurrent("state", torch.float32, self.args.size, initial=0.0)
        d.acting(self.act, reads=[state[t], d.started[t]], writes={"state": state[t + 1]})
        d.emulating()
        d.learning(self.learning(), reads={
            "state": lambda stop: state[stop - steps : stop],
            "started": lambda stop: d.started[stop - steps : stop + 1],
        })  # fmt: skip

    def act(self, nets, observations, state, started):
        values, state = nets.q(observations, state, started)
        random = draws.integers(values, self.num_actions)
        actions = torch.where(
            draws.uniform(values) < self.now.epsilon, random, values.argmax(dim=1)
        )
        return {"actions": actions, "state": state}

    def unrolled(self, net, batch):
        """Values of all observations; those of the burn-in without a gradient."""
        state, values = batch.state[0], []
        for k in range(self.args.sequence + 1):
            if k == self.args.burn_in:
                state = state.detach()
            value, state = net(batch.observations[k], state, batch.started[k])
            values.append(value)
        return torch.stack(values)

    def loss(self, nets, batch):
        values, b = self.unrolled(nets.q, batch), self.args.burn_in
        with torch.no_grad():
            targets = self.unrolled(nets.target, batch)
            best = values.argmax(dim=2, keepdim=True)
            following = targets.gather(2, best).squeeze(2)[1:]
            wanted = batch.rewards + batch.discounts * following
        chosen = values[:-1].gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        errors = ((chosen - wanted) * batch.played)[b:]
        return {
            "loss": (0.5 * errors.square() * batch.weights[b:]).mean(),
            "priorities": errors.detach().abs().amax(0),
        }


def trainer_of(kind=R2D2, **changes):
    args = Args(
        device="cpu", num_envs=ENVS, num_threads=1, learning_rate=5e-3, max_grad_norm=None,
        **changes,
    ).on(CPU)  # fmt: skip
    return Trainer(kind, args, ProcessGroup(0, 1, CPU))


def test_it_learns_what_only_memory_tells():
    """A point in each episode of three steps; chance gives 0."""
    trainer = trainer_of()
    total, episodes = scores_after(trainer, 900, 80)
    assert episodes > 200 and total / episodes > 0.7
    trainer.close()


SEEN: list[dict[str, torch.Tensor]] = []


class Checked(R2D2):
    """Keeps its batches."""

    def loss(self, nets, batch):
        names = ("observations", "state", "started", "actions", "rewards", "played")
        SEEN.append({name: getattr(batch, name).clone() for name in names})
        return super().loss(nets, batch)


def test_states_and_starts_are_those_of_acting():
    trainer = trainer_of(Checked)
    stored = {"state": {}, "started": {}, "observations": {}}
    by_name = {r.name: r for r in trainer.plan.program.recurrents}
    far = trainer.plan.storage.far
    SEEN.clear()
    checked = 0
    while trainer.steps < 130:
        trainer.iterate()
        for t in (trainer.steps - 2, trainer.steps - 1):
            for name, values in stored.items():
                store = far[by_name[name]]
                values[t] = store.values[t % store.length].clone()
        for batch in SEEN:
            for i in range(16):
                t, env = find(stored, batch, i, trainer.steps)
                assert t >= max(0, trainer.steps - (MEMORY // ENVS - 3)) and t + 8 <= trainer.steps
                for k in range(8):
                    assert torch.equal(batch["state"][k, i], stored["state"][t + k][env])
                    assert batch["started"][k, i] == stored["started"][t + k][env]
                checked += 1
        SEEN.clear()
    assert checked > 500
    trainer.close()


def find(stored, batch, i, steps):
    """The first step and the env of a sequence, by its states."""
    for t in range(max(0, steps - MEMORY // ENVS + 3), steps - 7):
        for env in range(ENVS):
            if torch.equal(batch["state"][0, i], stored["state"][t][env]) and all(
                torch.equal(batch["state"][k, i], stored["state"][t + k][env]) for k in range(8)
            ):
                return t, env
    raise AssertionError("expected a sequence that was played")


class Resumable(MemoryEnv):
    """MemoryEnv with its state."""

    def state_dict(self):
        return {"step": self.step_number, "secret": self.secret,
                "random": str(self.random.bit_generator.state)}  # fmt: skip

    def load_state_dict(self, state):
        import ast

        self.step_number, self.secret = state["step"], state["secret"].clone()
        self.random.bit_generator.state = ast.literal_eval(state["random"])


class OnResumable(R2D2):
    """R2D2 that can be resumed."""

    @classmethod
    def environment(cls, args, num_envs, device):
        return Resumable(num_envs)


def test_resume_is_exact():
    make = functools.partial(trainer_of, OnResumable)
    assert_same(state_after(make, 60, 31), state_after(make, 60))


class Short(R2D2):
    """Reads too few states."""

    def declare(self, d):
        super().declare(d)
        d.phases[0].reads["state"] = lambda stop: d.started[stop - 5 : stop]


def test_windows_that_are_not_the_memorys_are_refused():
    with pytest.raises(ValueError, match="state to be a window of all 57 steps") as raised:
        trainer_of(Short)
    assert isinstance(raised.value, Refusal)
