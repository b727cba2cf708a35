"""`evaluate` for all steps of a phase at once: the same values, in one call where that is right."""

from __future__ import annotations

import pytest
import torch
from test_algorithms import PROGRAMS, TINY, on_signals
from torch import nn
from walker import Walker

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import sample
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
STEPS = 6
# The shapes of the observations that `evaluate` got, since a test began.
SHAPES: list[tuple[int, ...]] = []


class Valued(Walker):
    """Learns from values that `evaluate` computes."""

    evaluates = {"values": torch.float32}

    def networks(self, num_actions):
        return {"net": nn.Linear(1, num_actions), "value": nn.Linear(1, 1)}

    def act(self, nets, observations):
        return {"actions": sample(nets.net(observations).log_softmax(dim=1))}

    def learning(self):
        return train.Learning(steps=STEPS, lag=1)

    def of(self, values):
        return values

    def evaluate(self, nets, observations):
        SHAPES.append(tuple(observations.shape))
        return {"values": self.of(nets.value(observations).squeeze(1))}

    def prepare(self, nets, batch):
        return {"seen": batch.values[1:]}

    def loss(self, nets, batch):
        log_pi = nets.net(batch.observations[:-1]).log_softmax(dim=2)
        values = nets.value(batch.observations[:-1]).squeeze(2)
        return {"loss": -(log_pi.mean(2) * batch.seen).mean() + values.square().mean()}


class Shifted(Valued):
    """Its values depend on the other envs of the step."""

    def of(self, values):
        return values - values.mean()


class ShiftedLater(Shifted):
    """Likewise, and at first all values are the same."""

    def networks(self, num_actions):
        nets = super().networks(num_actions)
        nn.init.zeros_(nets["value"].weight)
        nn.init.zeros_(nets["value"].bias)
        return nets


class Asking(Valued):
    """Takes only the observations of one step."""

    def of(self, values):
        assert len(values) == self.args.num_envs
        return values


def trained(kind, chunk=65_536, batch=True):
    args = train.Args(device="cpu", num_envs=4, num_threads=1, learner_chunk=chunk).on(CPU)
    trainer = Trainer(kind, args, ProcessGroup(0, 1, CPU), Passes(batch=batch))
    SHAPES.clear()
    for _ in range(4):
        trainer.iterate()
    shapes = list(SHAPES)
    weights = [p.detach().clone() for p in trainer.learner.weights.parameters]
    trainer.close()
    return shapes, weights


def test_steps_are_evaluated_at_once_and_learned_from_alike():
    one_by_one, expected = trained(Valued, batch=False)
    assert set(one_by_one) == {(4, 1)} and len(one_by_one) == 3 * (STEPS + 1)
    shapes, weights = trained(Valued)
    assert shapes == 3 * [(4 * (STEPS + 1), 1)]
    torch.testing.assert_close(weights, expected)


def test_no_more_observations_at_once_than_a_gradient_has():
    """Rows are envs of seven observations, two of them at once; then three steps of four envs."""
    shapes, weights = trained(Valued, chunk=14)
    assert set(shapes) == {(12, 1), (4, 1)} and len(shapes) == 3 * 3
    torch.testing.assert_close(weights, trained(Valued)[1])


@pytest.mark.parametrize("kind", [Shifted, ShiftedLater, Asking])
def test_what_looks_at_a_whole_step_gets_one_step(kind):
    shapes, weights = trained(kind)
    assert set(shapes) == {(4, 1)} and len(shapes) == 3 * (STEPS + 1)
    torch.testing.assert_close(weights, trained(kind, batch=False)[1])


class Pairs(Valued):
    """Its second value is an array of two numbers."""

    evaluates = {"values": torch.float32, "pairs": (torch.float32, 2)}
    acts_with_them = True

    def learning(self):
        return train.Learning(steps=STEPS)

    def act(self, nets, observations):
        acted = super().act(nets, observations)
        return acted | self.both(nets, observations) if self.acts_with_them else acted

    def both(self, nets, observations):
        values = nets.value(observations).squeeze(1)
        return {"values": values, "pairs": torch.stack([values, -values], dim=1)}

    def evaluate(self, nets, observations):
        SHAPES.append(tuple(observations.shape))
        return self.both(nets, observations)

    def prepare(self, nets, batch):
        assert batch.pairs.shape == (STEPS + 1, 4, 2)
        assert torch.equal(batch.pairs[..., 0], batch.values)
        assert torch.equal(batch.pairs[..., 1], -batch.values)
        return {"seen": batch.pairs[1:, :, 0]}


class PairsAlone(Pairs):
    """Its acting does not return them."""

    acts_with_them = False


def test_several_values_are_evaluated_in_one_call():
    shapes, weights = trained(PairsAlone)
    assert shapes == 4 * [(4 * (STEPS + 1), 1)]
    acted, same = trained(Pairs)
    assert acted == 4 * [(4, 1)]  # but those that acting had
    torch.testing.assert_close(weights, same)


def test_a_value_of_another_shape_is_refused():
    class Wrong(PairsAlone):
        evaluates = {"values": torch.float32, "pairs": (torch.float32, 3)}

    with pytest.raises(Refusal, match=r"pairs with a value for each of 4 envs, \(4, 3\), got"):
        trained(Wrong)


@pytest.mark.parametrize("name", ["PQN", "PPO"])
@pytest.mark.parametrize("lag", [0, 1])
def test_games_are_evaluated_in_as_few_calls(lag, name, monkeypatch):
    """With a lag all observations at once; else only the last one, which nobody acted on."""
    algorithm, settings, own = PROGRAMS[name]
    args = settings(**TINY, **own, num_envs=8, lag=lag).on(CPU)
    calls = []
    evaluate = algorithm.evaluate
    monkeypatch.setattr(
        algorithm, "evaluate",
        lambda self, nets, seen: calls.append(len(seen)) or evaluate(self, nets, seen),
    )  # fmt: skip
    trainer = Trainer(on_signals(algorithm), args, ProcessGroup(0, 1, CPU))
    calls.clear()
    for _ in range(4):
        trainer.iterate()
    assert calls == ([72] * 3 if lag else [8] * 4)
    trainer.close()
