"""Several gradients in an update, computed beside playing: batches, weights and plans."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from programs import run_interleaved
from test_plan_graphs import Recorder
from test_replay import Numbered
from torch import nn
from training_runs import assert_same, state_after

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import sample
from cule.train.nn.returns import discounted_returns
from cule.train.plan.graphs import CALLS_BEFORE_CAPTURE, Launcher
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer
from examples.reinforce.reinforce import Args as ReinforceArgs
from examples.reinforce.reinforce import Reinforce

CPU = torch.device("cpu")
ENVS, RATE = 4, 0.05
# Of each loss since a test began: the weights, and the batch.
LOSSES: list[tuple[list[torch.Tensor], dict[str, torch.Tensor]]] = []
# Of each step: the weights, the observations and the actions.
STEPS: list[tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]] = []
PARTS = ("observations", "actions", "rewards", "discounts", "played")


def layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(net, batch, steps):
    """The policy gradient of the first steps, with returns of all."""
    returns = discounted_returns(batch["rewards"], batch["discounts"], batch["played"].float(),
                                 steps=len(batch["rewards"]))  # fmt: skip
    log_pi = net(batch["observations"][:steps] / 100).log_softmax(dim=-1)
    chosen = log_pi.gather(-1, batch["actions"][:steps].unsqueeze(-1)).squeeze(-1)
    return -(chosen * returns[:steps] * batch["played"][:steps].float()).mean()


class Accumulating(train.Algorithm[train.Args]):
    """The policy gradient; `shape` is steps, gradients in an update, and steps ahead."""

    shape = (4, 3, 0)
    more: dict[str, int] = {}

    @classmethod
    def environment(cls, args, num_envs, device):
        return Numbered(num_envs)

    def networks(self, num_actions):
        return {"net": layers()}

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=RATE)

    def act(self, nets, observations):
        actions = sample(nets.net(observations / 100).log_softmax(dim=-1))
        STEPS.append(([p.detach().clone() for p in nets.net.parameters()], observations.clone(),
                      actions.clone()))  # fmt: skip
        return {"actions": actions}

    def learning(self):
        steps, accumulate, ahead = self.shape
        return train.Learning(steps=steps, accumulate=accumulate, ahead=ahead, **self.more)

    def loss(self, nets, batch):
        parts = {name: getattr(batch, name).clone() for name in PARTS}
        LOSSES.append(([p.detach().clone() for p in nets.net.parameters()], parts))
        return {"loss": loss_of(nets.net, parts, self.shape[0])}


def kind_of(shape, **more):
    return type("Kind", (Accumulating,), {"shape": shape, "more": more})


def trainer_of(kind, passes=None, **changes):
    settings = {"num_envs": ENVS, "num_threads": 1, "max_grad_norm": None, "gamma": 0.5, **changes}
    trainer = Trainer(kind, train.Args(device="cpu", **settings).on(CPU),
                      ProcessGroup(0, 1, CPU), passes)  # fmt: skip
    LOSSES.clear()
    STEPS.clear()
    return trainer


def stretch(env, first, stop, length):
    """Steps of play as a batch has them, with zeros past the end."""
    observations = [STEPS[t][1] for t in range(first, min(stop + 1, len(STEPS)))]
    if len(observations) == stop - first:
        observations.append(env._observations())
    columns = torch.tensor(env.steps[first:stop])
    played = {
        "observations": torch.stack(observations), "actions":
        torch.stack([STEPS[t][2] for t in range(first, stop)]), "rewards": columns[..., 0],
        "discounts": columns[..., 1], "played": columns[..., 2].bool(),
    }  # fmt: skip
    padded = {}
    for name, value in played.items():
        rows = length + (name == "observations")
        padded[name] = torch.cat([value, value.new_zeros(rows - len(value), *value.shape[1:])])
    return padded


SHAPES = [(4, 3, 0), (4, 3, 4), (4, 3, 6), (4, 3, 8), (4, 3, 99), (1, 5, 2), (5, 2, 1), (3, 1, 0)]


@pytest.mark.parametrize("start", [0, 13])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_batches_are_the_steps_played_and_updates_the_mean_of_gradients(shape, beside, start):
    steps, accumulate, ahead = shape
    trainer = trainer_of(kind_of(shape, start=start), Passes(beside=beside))
    env, period, iterations = trainer.collector.env, steps * accumulate, 6
    for _ in range(iterations):
        trainer.iterate()
        losses, LOSSES[:] = LOSSES[:], []
        end = trainer.steps
        if end < max(start, period):
            assert not losses
            continue
        begin = end - period
        assert len(losses) == accumulate
        net, gradients = layers(), []
        for number, (weights, batch) in enumerate(losses):
            first = begin + number * steps
            length = min(steps + ahead, period)
            stop = min(first + length, end)
            assert_same(batch, stretch(env, first, stop, length))
            # All of them with the weights that played.
            for played in STEPS[begin:end]:
                assert_same(weights, played[0])
            for parameter, weight in zip(net.parameters(), weights, strict=True):
                parameter.data = weight.clone()
            net.zero_grad()
            loss_of(net, batch, steps).backward()
            gradients.append([p.grad.clone() for p in net.parameters()])
        for number, weight in enumerate(trainer.nets.trained["net"].parameters()):
            mean = sum(gradient[number] for gradient in gradients) / accumulate
            wanted = losses[0][0][number] - RATE * mean
            torch.testing.assert_close(weight.detach(), wanted, rtol=1e-5, atol=1e-6)
    assert trainer.updates == iterations + 1 - max(1, -(-start // period))


@pytest.mark.parametrize("shape", [(4, 3, 0), (4, 3, 4), (2, 4, 3), (1, 5, 2)])
def test_what_runs_beside_computes_the_same_in_any_order(shape):
    """As streams could: nothing is overwritten while it is still read."""
    whole = trainer_of(kind_of(shape), Passes(beside=False))
    for _ in range(5):
        whole.iterate()
    wanted = whole.state_dict()["plan"]["objects"]
    for seed in range(5):
        trainer = trainer_of(kind_of(shape), Passes(beside=True))
        group = next(g for g in trainer.plan.groups if g.follows is not None)
        assert {"gradient", "update"} <= {o.name for o in group.operations}
        run_interleaved(trainer.plan, random.Random(seed).randrange, 5)
        assert_same(trainer.state_dict()["plan"]["objects"], wanted)


@pytest.mark.parametrize("beside", [False, True])
def test_training_goes_on_exactly(beside):
    def make():
        return trainer_of(kind_of((4, 3, 4)), Passes(beside=beside))

    assert_same(state_after(make, 5, restart=2), state_after(make, 5))


def test_chunks_change_nothing_but_rounding():
    weights = []
    for chunk in (4096, 13):
        trainer = trainer_of(kind_of((4, 3, 4)), learner_chunk=chunk)
        for _ in range(4):
            trainer.iterate()
        weights.append([p.detach() for p in trainer.nets.trained["net"].parameters()])
    for one, two in zip(*weights, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


# Plans --------------------------------------------------------------------------------------------


def reinforce(beside, **changes):
    args = ReinforceArgs(device="cpu", width=0.1, num_threads=1, num_envs=8, **changes).on(CPU)
    args.check(1)
    return Trainer(Reinforce, args, ProcessGroup(0, 1, CPU), Passes(beside=beside))


def test_gradients_are_captured_beside_the_next_steps():
    """With a wait for their steps, and with one of playing for what it would overwrite."""
    trainer, recorder = reinforce(True, num_steps=32, n_step=4), Recorder()
    plan = trainer.plan
    for operation in plan.program.operations:
        function = operation.function

        def noted(*read, name=operation.name, function=function):
            recorder.told.append(("node", recorder.stream, name))
            return function(*read)

        operation.function = noted
    launcher = Launcher(plan.executors, recorder)
    for iteration in range(CALLS_BEFORE_CAPTURE + 2):
        launcher.run(iteration)
    assert len(recorder.captures) == 1
    told = recorder.captures[0]
    records = {number: stream for kind, stream, number in told if kind == "record"}
    waits = [(stream, records[number]) for kind, stream, number in told if kind == "wait"]
    # For the iteration's begin, and before each gradient for the steps played since the last one.
    assert waits.count((1, 0)) == 1 + 7 + 1
    # For the gradients up to eight steps before, and at the end.
    assert waits.count((0, 1)) == 5 + 1
    nodes = [(name, stream) for kind, stream, name in told if kind == "node"]
    assert {name for name, stream in nodes if stream == 1} == {"prepare", "gradient", "update"}
    played = [
        sum(name == "emulate" for name, _ in nodes[:at])
        for at, (name, _) in enumerate(nodes)
        if name == "gradient"
    ]
    assert played == [8, 12, 16, 20, 24, 28, 32, 32]


def test_one_line_of_reinforce_makes_two_schedules():
    whole, steps = reinforce(True, num_steps=64), reinforce(True, num_steps=64, n_step=4)
    assert [g.stream for g in whole.plan.groups] == [0]
    follower = next(g for g in steps.plan.groups if g.follows is not None)
    assert follower.stream == 1 and follower.follows.stream == 0
    told = steps.plan.explain()
    assert "on stream 1, beside 1, each call after the steps of 1 before it" in told


def test_memory_grows_with_the_steps_ahead_and_not_with_those_of_an_update():
    def length(trainer):
        return next(
            how.length
            for r, how in trainer.plan.memory.allocations.items()
            if r.name == "observations"
        )

    # Stacks of four; 2 * 4 steps of a gradient, and 2 * 4 more that may be played meanwhile.
    for num_steps in (32, 64, 128):
        assert length(reinforce(False, num_steps=num_steps, n_step=4)) == 8 + 4
        assert length(reinforce(True, num_steps=num_steps, n_step=4)) == 8 + 4 + 7
        assert length(reinforce(True, num_steps=num_steps)) == num_steps + 4


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("changes, told", [
    ({"accumulate": 0}, "accumulate of Learning to be at least 1, got 0"),
    ({"ahead": 2}, "ahead of Learning together with accumulate"),
    ({"accumulate": 2, "every": 4}, "to have no every, got 4"),
    ({"accumulate": 2, "lag": 1}, "to have no lag, got 1"),
    ({"accumulate": 2, "minibatch": 4}, "to have no minibatch, got 4"),
    ({"accumulate": 2, "times": 2}, "to have no times, got 2"),
    ({"accumulate": 2, "groups": 2}, "to have no groups, got 2"),
    ({"accumulate": 2, "replay": train.Replay(400, 8)}, "to have no accumulate"),
])  # fmt: skip
def test_settings_without_a_meaning_are_refused(changes, told):
    settings = {"steps": 1 if "replay" in changes else 4, **changes}

    class Kind(Accumulating):
        def learning(self):
            return train.Learning(**settings)

    with pytest.raises(Refusal, match=told):
        trainer_of(Kind)


def test_values_of_steps_that_are_not_there_are_refused():
    class Kind(Accumulating):
        shape = (4, 3, 4)
        evaluates = {"values": torch.float32}

        def evaluate(self, nets, observations):
            return {"values": nets.net(observations)[:, 0]}

    with pytest.raises(Refusal, match="no evaluates and no reads of learning with ahead"):
        trainer_of(Kind)


def test_several_learnings_with_it_are_refused():
    class Kind(Accumulating):
        def declare(self, d):
            super().declare(d)
            d.learning(train.Learning(steps=12), name="other", loss=self.loss)

    with pytest.raises(Refusal, match="several learnings without lag and accumulate"):
        trainer_of(Kind)


def test_values_and_what_is_prepared_belong_to_their_gradient():
    """Values of all weights' own iteration, in one launch for each gradient."""
    launches, values = [], []

    class Kind(Accumulating):
        shape = (4, 3, 0)
        evaluates = {"values": torch.float32}

        def evaluate(self, nets, observations):
            launches.append(len(observations))
            return {"values": nets.net(observations)[:, 0]}

        def prepare(self, nets, batch):
            return {"seen": batch.values[:-1] + 0 * batch.rewards, "last": batch.values[1:]}

        def loss(self, nets, batch):
            with torch.no_grad():
                wanted = nets.net(batch.observations)[..., 0]
            values.append((torch.cat([batch.seen, batch.last[-1:]]), wanted))
            return super().loss(nets, batch)

    for merge, beside in itertools.product((True, False), repeat=2):
        trainer = trainer_of(Kind, Passes(merge=merge, beside=beside))
        launches.clear()
        values.clear()
        for _ in range(3):
            trainer.iterate()
        assert trainer.updates == 3 and len(LOSSES) == 9
        # Where nothing runs beside playing, those of all gradients are one.
        assert launches == ([5 * ENVS] * 9 if beside else [15 * ENVS] * 3)
        for one, wanted in values:
            torch.testing.assert_close(one, wanted, rtol=1e-4, atol=1e-5)
