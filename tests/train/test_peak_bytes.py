"""The memory that acting and preparing need while they run, and that a budget counts."""

from __future__ import annotations

import functools
import weakref

import pytest
import torch
from test_algorithms import PROGRAMS, TINY
from test_several_learnings import layers
from torch.utils._pytree import tree_map_only
from walker import Corridor

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.lowering.peak_bytes import PeakBytes, bytes_each
from cule.train.nn.models import sample
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
GIB = 2**30


def test_what_is_in_use_at_the_same_time_is_counted():
    outside = torch.zeros(1000)
    with PeakBytes() as peak:
        first = torch.zeros(1000)
        view = (first + 1)[:10]
        outside.add_(1).view(10, 100)
        assert peak.bytes == 8000  # the view has all of what it is a view of
        del view
        assert peak.bytes == 4000
        second = torch.ones(500)
        kept = first.view(-1)
        del first
        assert peak.bytes == 6000
        del kept, second
        assert peak.bytes == 0
    assert peak.peak == 8000


def test_what_grows_is_counted_and_what_has_no_memory_of_its_own_is_not():
    with PeakBytes() as peak:
        grown = torch.empty(0).resize_(1000)
        inputs = torch.ones(500)
        torch.tanh(inputs, out=grown[:500])
        torch.eye(3).to_sparse().sum()
    assert peak.bytes == 6000
    assert peak.peak >= 6000


class PutTogether(torch.Tensor):
    """Zeros that are made when they are read, as Stacks of nn/kernels/frames.py are."""

    held: torch.Tensor | None = None

    @staticmethod
    def __new__(cls, size):
        return torch.Tensor._make_wrapper_subclass(cls, (size,), dtype=torch.uint8)

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def whole(one):
            if one.held is None:
                one.held = torch.zeros(one.shape, dtype=torch.uint8)
            return one.held

        return function(*tree_map_only(cls, whole, args), **(kwargs or {}))


def test_what_is_put_together_when_it_is_read_counts_from_then_on():
    with PeakBytes() as peak:
        lazy, unread = PutTogether(1000), PutTogether(1000)
        assert peak.bytes == 0
        part = lazy[:10]
        assert peak.bytes == 1000 and len(unread) == 1000
        del lazy
        assert peak.bytes == 1000  # the view has it
        del part
        assert peak.bytes == 0
    outside = PutTogether(1000)
    outside + 1
    with PeakBytes() as peak:
        outside[:10].clone()
    assert peak.peak == 10


def test_layers_one_after_the_other_need_two_at_a_time():
    net = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(6)))
    inputs = torch.zeros(32, 256)
    with torch.no_grad(), PeakBytes() as peak:
        net(inputs)
    assert peak.peak == 2 * 32 * 256 * 4


def test_what_is_saved_for_gradients_counts_until_they_are_computed():
    weights = torch.zeros(1000, requires_grad=True)
    with PeakBytes() as peak, peak.saving():
        # exp() saves its result, of which nothing else knows any more after the sum.
        loss = weights.exp().sum()
        assert peak.bytes == 4004
        torch.autograd.grad(loss, weights)
        assert peak.bytes == 4
    assert peak.peak > 8000


def test_what_is_saved_leaves_nothing_behind_where_no_gradient_is_computed():
    """The results of exp and relu are saved for their gradients; that of detach is used alone."""
    weight, results = torch.ones(100, requires_grad=True), []
    with PeakBytes() as peak, peak.saving():
        for function in (torch.exp, torch.relu, torch.tanh):
            result = function(weight)
            results.append(weakref.ref(result))
            kept = result.detach()
            del result
        assert peak.bytes == 400
    assert [result() for result in results] == [None] * 3 and kept.sum() > 0


def test_what_each_row_needs_is_the_difference_of_two_calls():
    net = torch.nn.Linear(100, 50)

    def needs(rows):
        with PeakBytes() as peak, peak.saving():
            loss = net(torch.zeros(rows, 100)).tanh().sum()
            torch.autograd.grad(loss, list(net.parameters()))
        return peak

    few, more, weights = needs(2), needs(5), 4 * 101 * 50
    # The inputs, and results of both layers.
    assert bytes_each(few, more, 3) == 4 * (100 + 2 * 50)
    assert few.peak > weights
    assert 0 <= needs(200).peak - 200 * bytes_each(few, more, 3) < weights


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gradient_needs_what_is_planned_for_it(name, device):
    """And no more than gradients of weights besides, which the plan counts with the networks."""
    algorithm, settings, own = PROGRAMS[name]
    place = torch.device(device)
    changes = {**TINY, **own, "num_envs": 32, "device": device, "cuda_graphs": False}
    trainer = Trainer(algorithm, settings(**changes).on(place), ProcessGroup(0, 1, place))
    learner, found = trainer.learner, []
    compute = learner.compute_gradient

    def measured(*arguments):
        with PeakBytes() as peak, peak.saving():
            compute(*arguments)
        found.append(peak.peak)

    learner.compute_gradient = measured
    while not found:
        trainer.iterate()
    planned = learner.work.at_once * learner.work.bytes_each
    assert planned <= found[0] + 10_000
    assert found[0] <= planned + 4 * trainer.nets.weights.gradient.numel() + 10_000
    trainer.close()


def test_compiled_functions_work_inside():
    double = torch.compile(lambda x: (x * 2).sin() + 1, backend="eager")
    with PeakBytes():
        assert torch.equal(double(torch.zeros(5)), torch.ones(5))


# How many observations were evaluated at once, since a test began.
ASKED: list[int] = []


class Needs(train.Algorithm[train.Args]):
    """Acting and preparing with as much memory as a test asks for."""

    act_bytes = prepare_bytes = evaluate_bytes = 0

    @classmethod
    def environment(cls, args, num_envs, device):
        return Corridor(num_envs)

    def networks(self, num_actions):
        return {"net": layers(num_actions)}

    def act(self, nets, observations):
        torch.zeros(self.act_bytes, dtype=torch.uint8)
        return {"actions": sample(nets.net(observations).log_softmax(dim=1))}

    def prepare(self, nets, batch):
        torch.zeros(self.prepare_bytes, dtype=torch.uint8)
        values = batch.values[1:] if self.evaluates else 0.0
        return {"targets": batch.rewards + values}

    def evaluate(self, nets, observations):
        torch.zeros(self.evaluate_bytes * len(observations) // 4, dtype=torch.uint8)
        ASKED.append(len(observations))
        return {"values": nets.net(observations)[:, 0]}

    def learning(self):
        return train.Learning(steps=4)

    def loss(self, nets, batch):
        return {"loss": (nets.net(batch.observations[:-1]).mean(dim=2) - batch.targets).mean()}


def trainer_of(budget, **needs):
    kind = type("Kind", (Needs,), needs)
    if "evaluate_bytes" in needs:
        kind.evaluates = {"values": torch.float32}
    args = train.Args(device="cpu", num_envs=4, num_threads=1, memory_budget=budget).on(CPU)
    return Trainer(kind, args, ProcessGroup(0, 1, CPU))


@functools.cache
def least_of(**needs):
    """The least budget that works, in bytes, which the error message says."""
    with pytest.raises(Refusal, match="a memory budget of at least") as refused:
        trainer_of(1e-9, **needs)
    return int(str(refused.value).split(" bytes")[0].split()[-1].replace(",", ""))


@pytest.mark.parametrize("needs", ["act_bytes", "prepare_bytes", "evaluate_bytes"])
def test_a_budget_counts_acting_evaluating_and_preparing(needs):
    more = 5_000_000
    assert 0.99 * more < least_of(**{needs: more}) - least_of(**{needs: 0}) <= more
    trainer_of((least_of(**{needs: more}) + 1) / GIB, **{needs: more}).iterate()
    with pytest.raises(Refusal, match="a memory budget of at least"):
        trainer_of((least_of(**{needs: more}) - 10_000) / GIB, **{needs: more})


def test_several_steps_are_evaluated_at_once_where_a_gradient_has_the_memory():
    trainer_of((least_of(evaluate_bytes=10_000) + 1) / GIB, evaluate_bytes=10_000).iterate()
    assert ASKED[-5:] == [4] * 5
    trainer = trainer_of(1.0, evaluate_bytes=100)
    ASKED.clear()
    trainer.iterate()
    assert max(ASKED) > 4


def test_the_plan_says_what_they_need():
    told = trainer_of(None, act_bytes=2**20 * 3, prepare_bytes=2**20 * 5).plan.explain()
    assert "act (act): each step; needs 3.0 MiB" in told
    assert "prepare (learn): every 4 steps; needs 5.0 MiB" in told
