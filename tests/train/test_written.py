"""Algorithms of a page, written by the docs alone, beside loops over all that was played.

n-step returns whose n changes, returns of whole episodes, and self-imitation. GAE and V-trace are
in test_equal_to_handwritten.py, prioritized replay in test_replay.py, R2D2 in
test_recurrent_replay.py, soft actor-critic in test_vector_actions.py, phasic policy gradient and
two agents in test_several_learnings.py.
"""

from __future__ import annotations

import functools

import pytest
import torch
from test_replay import Numbered, transition
from torch import nn
from training_runs import assert_same, state_after

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import entropy_of, sample
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
ENVS = 4
# What losses got since a test began: a name, and parts of the batch.
SEEN: list[tuple[str, dict[str, torch.Tensor]]] = []


class Basis(train.Algorithm[train.Args]):
    """Policy and values of observations that are the number of the step and the env."""

    @classmethod
    def environment(cls, args, num_envs, device):
        return Numbered(num_envs)

    def networks(self, num_actions):
        return {"net": nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, num_actions + 1))}

    def heads(self, net, observations):
        both = net(observations / 500)
        return both[..., :-1].log_softmax(dim=-1), both[..., -1]

    def act(self, nets, observations):
        return {"actions": sample(self.heads(nets.net, observations)[0])}

    def policy_loss(self, log_pi, actions, advantages, mask):
        chosen = log_pi.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        return -(chosen * advantages * mask).mean() - 0.01 * entropy_of(log_pi).mean()

    def note(self, name, batch, *parts):
        SEEN.append((name, {part: getattr(batch, part).detach().clone() for part in parts}))


class ChangingN(Basis):
    """n-step returns; n is a schedule's, from 1 to 6."""

    evaluates = {"values": torch.float32}

    def schedules(self):
        return {"n": lambda frames: 1 + frames / 250}

    def evaluate(self, nets, observations):
        return {"values": self.heads(nets.net, observations)[1]}

    def learning(self):
        return train.Learning(steps=8, every=8)

    def prepare(self, nets, batch):
        steps, n = len(batch.rewards), self.now.n.floor().clamp(1, 6)
        returns = []
        for t in range(steps):
            total = torch.zeros_like(batch.rewards[0])
            going, discount = torch.ones_like(total), torch.ones_like(total)
            ahead = batch.values[t]
            for k in range(min(6, steps - t)):
                # An episode goes on until a step that is not played.
                going = going * (batch.played[t + k] if k else 1) * (k < n)
                total = total + going * discount * batch.rewards[t + k]
                discount = torch.where(going > 0, discount * batch.discounts[t + k], discount)
                ahead = torch.where(going > 0, batch.values[t + k + 1], ahead)
            returns.append(total + discount * ahead)
        self.note("values", batch, "values")
        return {"returns": torch.stack(returns)}

    def loss(self, nets, batch):
        log_pi, values = self.heads(nets.net, batch.observations[:-1])
        self.note("n", batch, "observations", "returns", "played")
        advantages = (batch.returns - values).detach()
        loss = self.policy_loss(log_pi, batch.actions, advantages, batch.played)
        return {"loss": loss + ((batch.returns - values).square() * batch.played).mean()}


class WholeEpisodes(Basis):
    """REINFORCE with returns up to the end of the episode, where the window has it."""

    def learning(self):
        return train.Learning(steps=24, every=8)

    def prepare(self, nets, batch):
        total = torch.zeros_like(batch.rewards[0])
        # Known is what comes before an end that is in the window.
        known, returns, all_known = torch.zeros_like(total), [], []
        for t in reversed(range(len(batch.rewards))):
            new = ~batch.played[t]  # a reset: the step before it was the last of its episode
            total = torch.where(new, 0.0, batch.rewards[t] + self.args.gamma * total)
            known = torch.where(new, 1.0, known)
            returns.append(total)
            all_known.append(known)
        return {"returns": torch.stack(returns[::-1]), "known": torch.stack(all_known[::-1])}

    def loss(self, nets, batch):
        log_pi, _ = self.heads(nets.net, batch.observations[:-1])
        self.note("whole", batch, "observations", "returns", "known", "played")
        mask = batch.known * batch.played
        return {"loss": self.policy_loss(log_pi, batch.actions, batch.returns, mask)}


class SelfImitation(Basis):
    """Actor-critic that also learns from what went better than expected (Oh et al., 2018)."""

    def learning(self):
        return train.Learning(steps=4)

    def declare(self, d):
        d.acting(self.act)
        d.emulating()
        d.learning(self.learning())
        rule = train.Prioritized(alpha=0.6, beta=0.1)
        memory = train.Replay(self.args.num_envs * 40, 16, n_step=5, prioritized=rule)
        d.learning(
            train.Learning(replay=memory, every=4, times=2), name="imitation",
            loss=self.imitation_loss,
        )  # fmt: skip

    def loss(self, nets, batch):
        log_pi, values = self.heads(nets.net, batch.observations)
        with torch.no_grad():
            total, returns = values[-1], []
            for t in reversed(range(len(batch.rewards))):
                ahead = torch.where(batch.played[t], total, values[t + 1])
                total = batch.rewards[t] + batch.discounts[t] * ahead
                returns.append(total)
            returns = torch.stack(returns[::-1])
        advantages = returns - values[:-1]
        policy = self.policy_loss(log_pi[:-1], batch.actions, advantages.detach(), batch.played)
        return {"loss": policy + (advantages.square() * batch.played).mean()}

    def imitation_loss(self, nets, batch):
        self.note("imitation", batch, "observations", "rewards", "discounts", "next_observations",
                  "actions")  # fmt: skip
        log_pi, values = self.heads(nets.net, batch.observations)
        with torch.no_grad():
            ahead = self.heads(nets.net, batch.next_observations)[1]
        better = (batch.rewards + batch.discounts * ahead - values).clamp(min=0)
        chosen = log_pi.gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        loss = -chosen * better.detach() + 0.5 * better.square()
        return {"loss": (loss * batch.weights).mean(), "priorities": better.detach()}


def trainer_of(kind):
    args = train.Args(device="cpu", num_envs=ENVS, num_threads=1, gamma=0.5).on(CPU)
    trainer = Trainer(kind, args, ProcessGroup(0, 1, CPU))
    SEEN.clear()
    return trainer


def place(number) -> tuple[int, int]:
    """The step and the env of an observation."""
    return divmod(round(float(number)), ENVS)


def test_n_steps_with_an_n_that_changes():
    trainer, lengths = trainer_of(ChangingN), set()
    while trainer.steps < 120:
        n = min(int(1 + trainer.frames / 250), 6)
        trainer.iterate()
        steps = trainer.collector.env.steps
        (_, before), (_, batch) = SEEN
        SEEN.clear()
        for i in range(8):
            for env in range(ENVS):
                t, of = place(batch["observations"][i, env, 0])
                assert of == env
                total, discount, following = transition(steps, t, env, min(n, 8 - i))
                value = float(before["values"][i + following - t, env])
                assert float(batch["returns"][i, env]) == pytest.approx(total + discount * value)
                lengths.add(following - t)
    assert lengths == set(range(1, 7))
    trainer.close()


def test_returns_of_whole_episodes():
    trainer, known = trainer_of(WholeEpisodes), 0
    while trainer.steps < 160:
        trainer.iterate()
        steps = trainer.collector.env.steps
        for _, batch in SEEN:
            last = place(batch["observations"][-1, 0, 0])[0]
            for i in range(24):
                for env in range(ENVS):
                    t = place(batch["observations"][i, env, 0])[0]
                    end = next((k for k in range(t, last) if not steps[k][env][2]), None)
                    assert (end is not None) == bool(batch["known"][i, env])
                    if end is None or not batch["played"][i, env]:
                        continue
                    wanted = sum(steps[k][env][0] * 0.5 ** (k - t) for k in range(t, end))
                    assert float(batch["returns"][i, env]) == pytest.approx(wanted, abs=1e-5)
                    known += 1
        SEEN.clear()
    assert known > 300
    trainer.close()


def test_self_imitation_learns_from_what_was_played():
    trainer, seen = trainer_of(SelfImitation), 0
    while trainer.steps < 160:
        trainer.iterate()
        steps = trainer.collector.env.steps
        for _, batch in SEEN:
            for i in range(16):
                t, env = place(batch["observations"][i, 0])
                total, discount, following = transition(steps, t, env, 5)
                assert (float(batch["rewards"][i]), float(batch["discounts"][i])) == (
                    total, discount
                )  # fmt: skip
                if discount:
                    assert place(batch["next_observations"][i, 0]) == (following, env)
                seen += 1
        SEEN.clear()
    assert seen > 500 and trainer.updates == 40 + 2 * 39
    trainer.close()


@pytest.mark.parametrize("kind", [ChangingN, WholeEpisodes, SelfImitation])
def test_resume_is_exact(kind):
    make = functools.partial(trainer_of, kind)
    assert_same(state_after(make, 24, 11), state_after(make, 24))
