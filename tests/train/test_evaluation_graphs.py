"""Evaluations on a GPU: which policies are captured, and that their scores stay the same."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from cule.train.evaluate.evaluator import Evaluator
from cule.train.evaluate.policy import policy_from
from cule.train.lowering.attributes import Attributes
from cule.train.lowering.peak_bytes import PeakBytes
from cule.train.nn.models import ActorCritic
from cule.train.plan.graphs import CALLS_BEFORE_CAPTURE

ACTIONS = 4  # of breakout


@pytest.mark.parametrize(
    ("function", "waits"),
    [
        (lambda x: x.relu().sum() * 2, False),
        (lambda x: torch.where(x > 1, x, 0 * x).argmax(), False),
        (lambda x: torch.randn_like(x).cumsum(0), False),
        (lambda x: x + torch.tensor(3.0), False),
        (lambda x: x * x.sum().item(), True),
        (lambda x: x if x.sum() > 1 else 2 * x, True),
        (lambda x: x[x > 1], True),
        (lambda x: x.nonzero(), True),
        (lambda x: torch.equal(x, x + 1), True),
        (lambda x: x.to("meta"), True),
        (lambda x: torch.empty(3, device="meta").copy_(x), True),
    ],
)
def test_what_a_graph_cannot_hold_is_noticed(function, waits):
    x = torch.tensor([1.0, 2.0, 3.0])
    with PeakBytes() as seen:
        function(x)
    assert seen.waits == waits


def test_attributes_on_the_host_are_compared_by_their_content():
    owner = SimpleNamespace(
        count=1, table={"a": [1, 2]}, mean=torch.zeros(2), far=torch.zeros(2, device="meta"),
        generator=torch.Generator(),
    )  # fmt: skip
    attributes = Attributes(owner)
    before = attributes.state_dict()
    assert attributes.are_alike_on_host(before)
    owner.far = torch.zeros(2, device="meta")
    assert attributes.are_alike_on_host(before), "it is another tensor of the same kind"
    for change in (
        lambda: setattr(owner, "count", 2), lambda: owner.table["a"].append(3),
        lambda: owner.mean.add_(1), lambda: torch.rand(1, generator=owner.generator),
        lambda: setattr(owner, "far", torch.zeros(3, device="meta")),
        lambda: setattr(owner, "more", 0), lambda: setattr(owner, "count", 2.0),
    ):  # fmt: skip
        before = attributes.state_dict()
        change()
        assert not attributes.are_alike_on_host(before)


class Algorithm:
    """Scores of a network, in one of several ways; counts its calls by Python."""

    num_actions = ACTIONS

    def __init__(self, way, calls):
        self.way, self.number, self.args = way, 0, calls

    def scores(self, nets, observations):
        self.args.append(len(observations))  # "args" are not compared
        scores = nets.net(observations)[0]
        if self.way == "a wait":
            scores = scores * (2 if scores.sum().item() > 0 else 1)
        elif self.way == "a number of Python":
            self.number += 1
            scores = scores * (1 + self.number % 3)
        return scores.log_softmax(dim=1)


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["nature", "lstm"])
@pytest.mark.parametrize("way", ["on the GPU", "a wait", "a number of Python"])
@pytest.mark.parametrize("greedy", [False, True])
def test_scores_are_the_same_with_a_graph(way, model, greedy):
    gpu, found, episodes = torch.device("cuda", 0), [], 6
    torch.manual_seed(1)
    net = ActorCritic(ACTIONS, model, width=0.25).to(gpu)
    torch.nn.init.normal_(net.heads.weight, std=0.3)
    for graphs in (False, True):
        calls = []
        evaluator = Evaluator(
            "breakout", episodes, gpu, emulator="cule", sticky=0.0, max_frames=800, graphs=graphs
        )
        for seed in (0, 1, 0):
            policy = policy_from(
                Algorithm(way, calls), SimpleNamespace(net=net), torch.autocast("cuda")
            )
            found.append(evaluator.scores(policy, seed, greedy=greedy))
        evaluator.close()
        assert set(calls) == {episodes}
        captured = graphs and way == "on the GPU"
        # The last call is the one that is captured.
        assert len(calls) == 3 * (CALLS_BEFORE_CAPTURE + 1) if captured else len(calls) > 100
    eager, captured = found[:3], found[3:]
    for one, other in zip(eager, captured, strict=True):
        assert (one == other).all()
    assert (eager[0] == eager[2]).all()
    assert greedy or (eager[0] != eager[1]).any()


@pytest.mark.gpu
def test_groups_of_episodes_are_captured_in_threads_side_by_side():
    """Four groups in two threads, one of them of another size; ale-py's envs, too."""
    gpu, found = torch.device("cuda", 0), []
    torch.manual_seed(1)
    net = ActorCritic(ACTIONS, width=0.25).to(gpu)
    for emulator, graphs in (("cule", False), ("cule", True), ("ale-py", True)):
        calls = []
        policy = policy_from(
            Algorithm("on the GPU", calls), SimpleNamespace(net=net), torch.autocast("cuda")
        )
        evaluator = Evaluator(
            "breakout", 70 if emulator == "ale-py" else 195, gpu, emulator=emulator, sticky=0.0,
            max_frames=400, num_threads=2, graphs=graphs,
        )  # fmt: skip
        found.append(evaluator.scores(policy, 3))
        evaluator.close()
        groups = len(evaluator._parts)
        assert graphs == (len(calls) == groups * (CALLS_BEFORE_CAPTURE + 1))
    assert (found[0] == found[1]).all() and len(set(found[1])) > 1
    assert len(found[2]) == 70
