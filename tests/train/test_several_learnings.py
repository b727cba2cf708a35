"""Several learnings in a program: in order, with the newest weights, each with its own networks."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
import torch
from torch import nn
from training_runs import assert_same, state_after
from walker import Corridor, Walker

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import entropy_of, sample
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
RATE = 0.1
# What was called, since a test began: a name, the step, the weights by network, and the batch.
CALLS: list[tuple[str, dict[str, list[torch.Tensor]], Any]] = []


def layers(outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, outputs))


def weights_of(nets) -> dict[str, list[torch.Tensor]]:
    return {n: [p.detach().clone() for p in net.parameters()] for n, net in vars(nets).items()}


class Several(train.Algorithm[train.Args]):
    """Losses without a meaning, of which every call is kept."""

    further: tuple[tuple[str, train.Learning, tuple[str, ...] | None], ...] = ()
    main: tuple[train.Learning, tuple[str, ...] | None] = (train.Learning(steps=4), None)

    @classmethod
    def environment(cls, args, num_envs, device):
        return Corridor(num_envs)

    def networks(self, num_actions):
        return {"one": layers(num_actions), "two": layers(num_actions)}

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=RATE)

    def act(self, nets, observations):
        CALLS.append(("act", weights_of(nets), observations.clone()))
        both = nets.one(observations) + nets.two(observations)
        return {"actions": sample(both.log_softmax(dim=1))}

    def learning(self):
        return self.main[0]

    def declare(self, d):
        d.acting(self.act)
        d.emulating()
        d.learning(self.main[0], networks=self.main[1])
        for name, learning, networks in self.further:
            d.learning(learning, name=name, loss=self.loss_of(name), networks=networks)

    def loss_of(self, name):
        def loss(nets, batch):
            parts = {"observations": batch.observations.clone(), "actions": batch.actions.clone()}
            CALLS.append((name, weights_of(nets), parts))
            return {"loss": value_of(nets, parts), "size": batch.actions.float().mean()}

        return loss

    def loss(self, nets, batch):
        return self.loss_of("main")(nets, batch)


def value_of(nets, parts):
    seen = parts["observations"]
    one, two = nets.one(seen), nets.two(seen)
    return (one.square() + 0.5 * two.square()).mean() + (one * two).mean()


def trainer_of(kind, passes=None, **changes):
    args = train.Args(
        device="cpu", num_envs=4, num_threads=1, max_grad_norm=None, **changes
    ).on(CPU)  # fmt: skip
    trainer = Trainer(kind, args, ProcessGroup(0, 1, CPU), passes)
    CALLS.clear()
    return trainer


def stepped(weights, parts, trained):
    """The weights after an update, by hand."""
    nets = {}
    for name, values in weights.items():
        nets[name] = layers(2)
        for p, value in zip(nets[name].parameters(), values, strict=True):
            p.data = value.clone()
    of = type("Nets", (), nets)
    value_of(of, parts).backward()
    return {
        name: [p.detach() - RATE * p.grad if name in trained else p.detach()
               for p in net.parameters()]
        for name, net in nets.items()
    }  # fmt: skip


R = train.Replay
KINDS = {
    "auxiliary": (
        train.Learning(steps=4), None, [("aux", train.Learning(steps=12, times=2), None)],
    ),
    "two agents": (
        train.Learning(steps=4, every=2), ("one",),
        [("other", train.Learning(steps=3, every=4, start=9), ("two",))],
    ),
    "three": (
        train.Learning(steps=6, every=3, epochs=2, minibatch=8), ("one",),
        [("again", train.Learning(replay=R(80, 6, n_step=2), every=6, times=3), ("one",)),
         ("other", train.Learning(replay=R(60, 5), every=3, start=4), ("two",))],
    ),
    "earlier than the main": (
        train.Learning(steps=2, every=2, start=20), None,
        [("early", train.Learning(steps=2, every=4), None)],
    ),
}  # fmt: skip


def kind_of(name):
    learning, networks, further = KINDS[name]
    return type("Several", (Several,), {"main": (learning, networks), "further": tuple(further)})


def due(learning, t, num_envs=4):
    """The updates of a learning after step t."""
    first = learning.first(num_envs) - 1
    return learning.updates(num_envs) if t >= first and (t - first) % learning.period == 0 else 0


@pytest.mark.parametrize("alias", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_updates_come_in_order_and_have_the_weights_of_those_before(name, alias):
    learning, networks, further = KINDS[name]
    trainer = trainer_of(kind_of(name), Passes(alias=alias))
    while trainer.steps < 60:
        trainer.iterate()
    learnings = [("main", learning, networks), *further]
    wanted = []
    for t in range(trainer.steps):
        wanted.append("act")
        for called, one, _ in learnings:
            wanted += [called] * due(one, t)
    assert [called for called, *_ in CALLS] == wanted
    trains = {called: nets or ("one", "two") for called, _, nets in learnings}
    now = CALLS[0][1]
    for called, seen, parts in CALLS:
        torch.testing.assert_close(seen, now)
        if called != "act":
            now = stepped(seen, parts, trains[called])
    assert trainer.updates == sum(called != "act" for called in wanted)
    for called in trains:
        assert wanted.count(called) > 3
    trainer.close()


def test_resume_is_exact():
    class Resumed(kind_of("three")):
        def act(self, nets, observations):
            return {"actions": sample(nets.one(observations).log_softmax(dim=1))}

    make = functools.partial(trainer_of, Resumed)
    assert_same(state_after(make, 30, 13), state_after(make, 30))


def test_the_log_has_the_numbers_of_each(tmp_path):
    args = train.Args(
        device="cpu", num_envs=4, num_threads=1, folder=tmp_path, total_frames=4 * 4 * 60,
        eval_episodes=0, log_every=5, progress=False, plot=False, logger="none",
    )  # fmt: skip
    CALLS.clear()
    row = train.train(kind_of("auxiliary"), args)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    line = [line for line in lines if line["kind"] == "training"][-1]
    assert {"size", "grad_norm", "aux_size", "aux_grad_norm"} <= set(line)
    means = [float(parts["actions"].float().mean()) for name, _, parts in CALLS if name == "aux"]
    assert row["updates"] == line["updates"] == 15 + 2 * 5
    assert min(means) <= line["aux_size"] <= max(means)


class PhasicPolicyGradient(Walker):
    """PPG (Cobbe et al., 2021): values in an auxiliary phase, while the policy stays."""

    def networks(self, num_actions):
        return {"net": layers(num_actions + 1)}

    def heads(self, net, observations):
        both = net(observations)
        return both[..., :-1].log_softmax(dim=-1), both[..., -1]

    def act(self, nets, observations):
        return {"actions": sample(self.heads(nets.net, observations)[0])}

    def learning(self):
        return train.Learning(steps=8)

    def declare(self, d):
        d.acting(self.act)
        d.emulating()
        d.learning(self.learning())
        d.learning(
            train.Learning(steps=32, epochs=2, minibatch=32), name="auxiliary",
            loss=self.auxiliary_loss, prepare=self.before,
        )  # fmt: skip

    def returns(self, batch):
        total, found = torch.zeros_like(batch.rewards[0]), []
        for t in reversed(range(len(batch.rewards))):
            total = batch.rewards[t] + batch.discounts[t] * batch.played[t] * total
            found.append(total)
        return torch.stack(found[::-1])

    def prepare(self, nets, batch):
        returns = self.returns(batch)
        return {"advantages": returns - returns.mean()}

    def loss(self, nets, batch):
        log_pi, _ = self.heads(nets.net, batch.observations[:-1])
        chosen = log_pi.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        loss = -(chosen * batch.advantages * batch.played).mean()
        return {"loss": loss - 0.01 * entropy_of(log_pi).mean()}

    def before(self, nets, batch):
        log_pi, _ = self.heads(nets.net, batch.observations[:-1])
        return {"targets": self.returns(batch), "right_before": log_pi[..., 1]}

    def auxiliary_loss(self, nets, batch):
        log_pi, values = self.heads(nets.net, batch.observations)
        moved = (log_pi[..., 1] - batch.right_before).square()
        error = (values - batch.targets).square() * batch.played
        return {"loss": error.mean() + 10 * moved.mean(), "error": error.mean().detach()}


def test_phasic_policy_gradient_learns_values_and_keeps_its_policy():
    trainer = trainer_of(PhasicPolicyGradient, learning_rate=0.01)
    errors = []
    while trainer.steps < 32 * 40:
        trainer.iterate()
        if trainer.steps % 320 == 0:
            means = trainer.learners[1].means(trainer.learners[1].take_metrics(), 0)
            errors.append(means["auxiliary_error"])
    states = torch.tensor([[0.0], [0.3]])
    log_pi, _ = trainer.algorithm.heads(trainer.nets.trained["net"], states)
    assert bool((log_pi[:, 1].exp() > 0.9).all())  # to the right
    assert errors[-1] < 0.5 * errors[0]
    trainer.close()


def wrong(**changes):
    def declare(self, d):
        d.acting(self.act)
        d.emulating()
        for call in changes.get("calls", ()):
            d.learning(**{key: getattr(self, value) if key == "loss" else value
                          for key, value in call.items()})  # fmt: skip

    return type("Wrong", (Several,), {"declare": declare})


MAIN = {"learning": train.Learning(steps=4)}
MORE = {"learning": train.Learning(steps=4), "name": "more", "loss": "loss"}


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([MAIN, MAIN], "with a name of its own and a loss, .* got name='', loss=None"),
        ([MAIN, MORE, MORE], "with a name of its own and a loss, .* got name='more'"),
        ([MAIN, {**MORE, "name": "a b"}], "with a name of its own and a loss"),
        ([{**MAIN, "name": "x"}], "the first learning without a name, got 'x'"),
        ([MAIN, {**MORE, "learning": train.Learning(steps=3)}],
         "the period of more to be a multiple of the main learning's, 4, got 3"),
        ([MAIN, {**MORE, "learning": train.Learning(steps=4, lag=1)}], "several learnings without"),
        ([MAIN, {**MORE, "networks": ["three"]}], "to train some of one, two, got three"),
        ([MAIN, {**MORE, "networks": ["one"]}], "the same networks, or none in common"),
        ([{**MAIN, "networks": ["one"]}, {**MORE, "networks": ["one"]}], "got none for two"),
        ([MAIN, {**MORE, "networks": "one"}], "expected names of networks, .*, got 'one'"),
        ([MAIN, {**MORE, "networks": [1]}], r"expected names of networks, .*, got \[1\]"),
        ([MAIN, {**MORE, "reads": ["a"]}], "expected reads of learning to be functions by name"),
        ([MAIN, {**MORE, "reads": {"a": 3}}], "expected reads of learning to be functions by name"),
        ([MAIN, {**MORE, "prepare": 3}], "expected a function as prepare, got 3"),
        ([MAIN, {**MORE, "name": "ms"}], "names of their own in the log, .*, got ms_"),
        ([{**MAIN, "networks": ["one", "two"]}, {**MORE, "networks": []}], "each learning to"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(calls, message):
    with pytest.raises(ValueError, match=message) as raised:
        trainer_of(wrong(calls=calls))
    assert isinstance(raised.value, Refusal)


class Clashing(Several):
    """Its main loss logs what the further one's number would be called."""

    further = (("more", train.Learning(steps=4), None),)

    def loss(self, nets, batch):
        return super().loss(nets, batch) | {"more_size": batch.actions.float().mean()}


def test_numbers_with_one_name_in_the_log_are_refused():
    with pytest.raises(ValueError, match=r"names of their own in the log, .*, got more_size"):
        trainer_of(Clashing)
