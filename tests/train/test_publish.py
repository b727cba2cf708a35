"""Published policies are equal to their checkpoints, bit for bit; networks of one's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from published_runs import ALGORITHMS, CPU, TINY, played, published, run_of_a2c, trained
from torch import nn

from cule import train
from cule.train.evaluate import policies
from cule.train.nn.memory import Lstm
from cule.train.nn.models import ActorCritic, sample
from cule.train.published import card
from examples.reinforce import reinforce

pytest.importorskip("safetensors")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of A2C, and its published folder."""
    return run_of_a2c(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_published_policy_equals_its_checkpoint_bit_for_bit(tmp_path, name):
    algorithm, kind, more = ALGORITHMS[name]
    trained(tmp_path, algorithm, kind, **more)
    agent = train.load(published(tmp_path), "cpu", seed=3)
    policy, state = policies.load_policy(tmp_path, CPU)
    seen, begins = played()
    episodes = policy.begin(5, CPU)
    generator = torch.Generator().manual_seed(3)
    for observations, started in zip(seen, begins, strict=True):
        wanted = episodes.scores(observations, started=started)
        actions = agent(observations, started)
        assert torch.equal(actions, sample(wanted, generator))
        assert actions.dtype == torch.int64 and agent.config.num_actions == wanted.shape[1]
    assert agent.config.frames == state["frames"] and agent.config.game == "pong"
    env = agent.make_env(3, num_threads=1, reset_pool_size=1)
    observations, _ = env.reset(seed=0)
    agent.begin()
    env.step(agent(observations))
    assert env.single_action_space.n == state["num_actions"]


@pytest.mark.parametrize(
    ("layout", "limit"), [("2act@0+learn@0", 8), ("decoupled:3+2", None), ("staggered:2", None)]
)
def test_one_process_has_the_policy_of_a_training_by_several(run, layout, limit):
    policy, state = policies.load_policy(run, CPU)
    changes = {"layout": layout, "max_staleness": limit, "num_envs": 12}
    same = policies.policy_of({**state, "args": {**state["args"], **changes}}, CPU)
    seen = played(1)[0][0]
    assert torch.equal(same.begin(5, CPU).scores(seen), policy.begin(5, CPU).scores(seen))


def test_an_lstm_remembers_each_env_until_its_episode_begins_anew(tmp_path):
    algorithm, kind, more = ALGORITHMS["ppo, lstm"]
    trained(tmp_path, algorithm, kind, **more)
    agent = train.load(published(tmp_path), "cpu")
    seen, _ = played(2)
    first, second = agent.scores(seen[0]), agent.scores(seen[0])
    assert not torch.equal(first, second)
    assert torch.equal(agent.scores(seen[0], torch.ones(5, dtype=torch.bool)), first)
    with pytest.raises(ValueError, match=r"expected observations of 5 envs, as before, which the "
                       r"policy remembers, got 2: begin\(\) forgets them"):  # fmt: skip
        agent(seen[0][:2])
    agent.begin()
    assert torch.allclose(agent.scores(seen[0][:2]), first[:2], atol=1e-6)


def test_actions_have_the_form_of_observations(run):
    agent = train.load(run / "published", "cpu", greedy=True)
    seen = played(1)[0][0]
    actions = agent(seen)
    assert torch.equal(actions, agent.scores(seen).argmax(dim=1))
    array = agent(seen.numpy())
    assert isinstance(array, np.ndarray) and array.dtype == np.int64
    assert (array == actions.numpy()).all() and len(agent(seen[:2])) == 2


@pytest.mark.parametrize("given, told", [
    (torch.zeros(2, 4, 84, 84), r"expected observations of shape \('n', 4, 84, 84\) and torch.ui"),
    (torch.zeros(4, 84, 84, dtype=torch.uint8), r"got \(4, 84, 84\) and torch.uint8"),
    (np.zeros((2, 4, 84, 84)), "expected observations as a tensor or an array of torch.uint8"),
    ([1], "expected observations as a tensor or an array"),
])  # fmt: skip
def test_other_observations_are_refused(run, given, told):
    with pytest.raises((TypeError, ValueError), match=told):
        train.load(run / "published", "cpu")(given)


def test_another_number_of_beginnings_is_refused(run):
    agent, seen = train.load(run / "published", "cpu"), played(1)[0][0]
    with pytest.raises(ValueError, match="expected started of 5 envs, as observations, got 2"):
        agent(seen, torch.ones(2, dtype=torch.bool))
    with pytest.raises(TypeError, match="expected no stack_num for make_env, as the policy was tr"):
        agent.make_env(2, stack_num=1)


# Networks of one's own ---------------------------------------------------------------------------


class Tied(nn.Module):
    """Returns a tuple of logits and a number, with a memory, a buffer and two names of a weight."""

    def __init__(self, num_actions):
        super().__init__()
        self.register_buffer("scale", torch.tensor([255.0]))
        self.memory = Lstm(49 * 4, 8)
        self.head = nn.Linear(8, num_actions)

    def forward(self, observations):
        pixels = observations[:, :, ::12, ::12].flatten(1) / self.scale
        return self.head(self.memory(pixels)), pixels.mean(dim=1)


class Own(reinforce.Reinforce):
    """With a network of its own."""

    def networks(self, num_actions):
        return {"net": Tied(num_actions)}

    def act(self, nets, observations):
        return {"actions": sample(nets.net(observations)[0].log_softmax(dim=1))}

    def scores(self, nets, observations):
        return nets.net(observations)[0].log_softmax(dim=1)

    def loss(self, nets, batch):
        shape = batch.actions.shape
        logits = nets.net(batch.observations[: shape[0]].flatten(0, 1))[0].unflatten(0, shape)
        chosen = logits.log_softmax(dim=2).gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        return {"loss": -(chosen * batch.returns).mean()}


class Warm(Own):
    """Its scores are none of its network's outputs."""

    def scores(self, nets, observations):
        return (nets.net(observations)[0] * 2).log_softmax(dim=1)


class Two(Own):
    """Its scores call two networks."""

    def networks(self, num_actions):
        return {"net": Tied(num_actions), "other": ActorCritic(num_actions, "nature", 0.1)}

    def scores(self, nets, observations):
        return nets.net(observations)[0].log_softmax(dim=1) + nets.other(observations)[0]

    def loss(self, nets, batch):
        other = nets.other(batch.observations[:1].flatten(0, 1))
        value = (other[0].sum() + other[1].sum()) * 1e-9
        return {"loss": super().loss(nets, batch)["loss"] + value}


def own_run(folder, kind):
    args = {name: value for name, value in TINY.items() if name != "width"}
    asked = reinforce.Args(folder=folder, game="pong", total_frames=0, num_steps=8, **args)
    train.train(kind, asked)
    return folder


def test_a_network_of_ones_own_is_passed_to_load(tmp_path):
    own_run(tmp_path, Own)
    folder = published(tmp_path, program=(__name__,))
    agent = train.load(folder, "cpu", network=Tied)
    assert (agent.config.network, agent.config.outputs) == ("own", "logits")
    policy, _ = policies.load_policy(tmp_path, CPU, (__name__,))
    seen, begins = played()
    episodes = policy.begin(5, CPU)
    for observations, started in zip(seen, begins, strict=True):
        wanted = episodes.scores(observations, started=started)
        assert torch.equal(agent.scores(observations, started), wanted)
    with pytest.raises(ValueError, match=r"expected network=, a function .* got none for a net"):
        train.load(folder, "cpu")
    with pytest.raises(TypeError, match=r"expected network to make a torch.nn.Module, got 3"):
        train.load(folder, "cpu", network=lambda count: 3)
    with pytest.raises(ValueError, match=r"expected the weights of a Linear in .*: bias is none"):
        train.load(folder, "cpu", network=lambda count: nn.Linear(1, count))
    with pytest.raises(ZeroDivisionError):
        train.load(folder, "cpu", network=lambda count: 1 / 0)
    assert "network=MyNetwork" in (folder / card.CARD).read_text()


@pytest.mark.parametrize("kind, told", [
    (Warm, "expected an algorithm whose scores are its network's log-probabilities or logits, or"),
    (Two, "expected an algorithm whose scores call one network, which is what is published, got"),
])  # fmt: skip
def test_scores_that_need_code_are_not_published(tmp_path, kind, told):
    own_run(tmp_path, kind)
    with pytest.raises(ValueError, match=told):
        published(tmp_path, program=(__name__,))
    assert not (tmp_path / "published").exists()


def test_what_is_not_a_networks_own_is_refused(run):
    with pytest.raises(ValueError, match=r"expected network=, .* got one for an actor-critic"):
        train.load(run / "published", "cpu", network=Tied)


@pytest.mark.gpu
@pytest.mark.parametrize("bf16", [False, True])
def test_a_published_policy_on_a_gpu_equals_its_checkpoint(tmp_path, bf16):
    algorithm, kind, more = ALGORITHMS["a2c"]
    trained(tmp_path, algorithm, kind, **more | {"device": "cuda", "bf16": bf16})
    agent = train.load(published(tmp_path), "cuda", greedy=True)
    policy, _ = policies.load_policy(tmp_path, torch.device("cuda"))
    seen = played(1)[0][0].cuda()
    with torch.no_grad():
        wanted = policy.begin(5, torch.device("cuda")).scores(seen)
    assert torch.equal(agent.scores(seen), wanted)
    assert agent(seen).is_cuda and agent(seen.cpu()).is_cuda
