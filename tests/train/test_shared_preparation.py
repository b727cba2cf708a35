"""What two learnings prepare alike is prepared once, and only then."""

from __future__ import annotations

import pytest
import torch
from test_several_learnings import layers
from walker import CPU, Walker

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import entropy_of, sample
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer

CALLS: list[str] = []


class ActorCritic(Walker):
    """Actor and critic learn one after the other, with optimizers of their own."""

    every = (6, 6)
    steps = (6, 6)

    def networks(self, num_actions):
        return {"actor": layers(num_actions), "critic": layers(1)}

    def act(self, nets, observations):
        return {"actions": sample(nets.actor(observations).log_softmax(dim=1))}

    def learning(self):
        return train.Learning(steps=self.steps[0], every=self.every[0], epochs=2, minibatch=24)

    def declare(self, d):
        d.acting(self.act)
        d.emulating()
        d.learning(self.learning(), networks=("actor",))
        d.learning(
            train.Learning(steps=self.steps[1], every=self.every[1]), name="critic",
            loss=self.critic_loss, prepare=self.prepare, networks=("critic",),
        )  # fmt: skip

    def values(self, nets, batch):
        return nets.critic(batch.observations).squeeze(-1)

    def prepare(self, nets, batch):
        CALLS.append("prepare")
        values = self.values(nets, batch)
        advantage, found = torch.zeros_like(values[0]), []
        for t in reversed(range(len(batch.rewards))):
            error = batch.rewards[t] + batch.discounts[t] * values[t + 1] - values[t]
            advantage = error + 0.9 * batch.discounts[t] * advantage
            found.append(advantage * batch.played[t])
        advantages = torch.stack(found[::-1])
        return {"advantages": advantages, "returns": advantages + values[:-1]}

    def loss(self, nets, batch):
        log_pi = nets.actor(batch.observations).log_softmax(dim=-1)
        chosen = log_pi.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
        loss = -(chosen * batch.advantages * batch.played).mean()
        return {"loss": loss - 0.01 * entropy_of(log_pi).mean()}

    def critic_loss(self, nets, batch):
        values = self.values(nets, batch)[:-1]
        return {"loss": ((values - batch.returns).square() * batch.played).mean()}


class OfThePolicy(ActorCritic):
    """What is prepared for the critic has a policy that has learned since."""

    def values(self, nets, batch):
        policy = nets.actor(batch.observations).log_softmax(dim=-1)
        return nets.critic(batch.observations).squeeze(-1) + 0.1 * policy[..., 0]


class Drawing(ActorCritic):
    """Each preparation has random numbers of its own."""

    def prepare(self, nets, batch):
        noise = 0.01 * torch.rand(())
        return {name: value + noise for name, value in super().prepare(nets, batch).items()}


class Counting(ActorCritic):
    """A preparation changes an attribute."""

    def __init__(self, args, context):
        super().__init__(args, context)
        self.number = 0.0

    def prepare(self, nets, batch):
        self.number += 0.01
        return {n: value + self.number for n, value in super().prepare(nets, batch).items()}


class Leaving(Counting):
    """A loss changes an attribute, which a preparation reads."""

    def prepare(self, nets, batch):
        found = ActorCritic.prepare(self, nets, batch)
        return {name: value + self.number for name, value in found.items()}

    def loss(self, nets, batch):
        self.number += 0.01
        return super().loss(nets, batch)


class Buffered(ActorCritic):
    """A preparation changes a buffer of a network."""

    def networks(self, num_actions):
        nets = super().networks(num_actions)
        nets["critic"].register_buffer("number", torch.zeros(()))
        return nets

    def values(self, nets, batch):
        with torch.no_grad():
            nets.critic.number += 0.01
        return super().values(nets, batch) + nets.critic.number


class OtherSteps(ActorCritic):
    """The critic learns from more steps."""

    steps = (6, 12)


class LessOften(ActorCritic):
    """The critic learns from the same steps, every other time."""

    every = (6, 12)


KINDS = (
    ActorCritic, OfThePolicy, Drawing, Counting, Leaving, Buffered, OtherSteps, LessOften
)  # fmt: skip


def learned(kind, merge):
    """The weights after some steps, how often they were prepared, and the plan."""
    args = train.Args(device="cpu", num_envs=8, num_threads=1, learning_rate=0.01).on(CPU)
    trainer = Trainer(kind, args, ProcessGroup(0, 1, CPU), Passes(merge=merge))
    CALLS.clear()
    while trainer.steps < 60:
        trainer.iterate()
    weights = [p.detach().clone() for p in trainer.nets.weights.parameters]
    calls, text = len(CALLS), trainer.plan.explain()
    trainer.close()
    return weights, calls, text


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_prepared_once_is_as_if_prepared_twice(kind):
    wanted, twice, _ = learned(kind, merge=False)
    weights, calls, text = learned(kind, merge=True)
    assert all(map(torch.equal, weights, wanted))
    once = kind is ActorCritic
    assert twice == {LessOften: 15, OtherSteps: 19}.get(kind, 20)
    assert calls == (10 if once else twice)
    assert ("prepare (critic) is prepare's: made once" in text) is once


def test_a_network_that_was_not_used_at_first_is_refused():
    class Later(ActorCritic):
        def prepare(self, nets, batch):
            if float(batch.rewards.sum()):
                nets.actor(batch.observations)
            return super().prepare(nets, batch)

    with pytest.raises(ValueError, match=r"also used in a first call, .*\(critic\), got actor"):
        learned(Later, merge=True)


def test_networks_that_are_looked_through_count_as_used():
    class Through(ActorCritic):
        def values(self, nets, batch):
            return sum(net(batch.observations)[..., 0] for net in vars(nets).values())

    wanted, twice, _ = learned(Through, merge=False)
    weights, calls, _ = learned(Through, merge=True)
    assert all(map(torch.equal, weights, wanted)) and calls == twice == 20
