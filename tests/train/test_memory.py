"""Networks with a memory: --model lstm in every on-policy algorithm, and memories of one's own."""

from __future__ import annotations

import functools
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_recurrent import MemoryEnv
from torch import nn
from training_runs import assert_same, scores_after, state_after

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.evaluate.policy import Policy
from cule.train.nn.memory import Carry, Lstm, Memory, carrying
from cule.train.nn.models import ActorCritic, QNetwork, policy_and_value
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer
from examples.a2c_vtrace import train as a2c
from examples.ppo import ppo
from examples.pqn import pqn
from examples.reinforce import reinforce
from tests.support.marks import few

CPU = torch.device("cpu")


# The layer ----------------------------------------------------------------------------------------


def lstm_and_torchs(inputs, size):
    ours, theirs = Lstm(inputs, size), nn.LSTMCell(inputs, size)
    with torch.no_grad():
        theirs.weight_ih.copy_(ours.inputs.weight)
        theirs.weight_hh.copy_(ours.outputs.weight)
        theirs.bias_ih.copy_(ours.inputs.bias.normal_())
        theirs.bias_hh.zero_()
    return ours, theirs


def test_lstm_is_torchs_with_states_of_0_where_episodes_begin():
    ours, theirs = lstm_and_torchs(5, 3)
    inputs, state = torch.randn(9, 4, 5), torch.randn(4, 2, 3)
    started = torch.rand(9, 4) < 0.3
    outputs, after = ours.unroll(inputs, state, started)
    h, c = state.unbind(1)
    for t in range(9):
        kept = (~started[t]).float().unsqueeze(1)
        h, c = theirs(inputs[t], (h * kept, c * kept))
        torch.testing.assert_close(outputs[t], h)
    torch.testing.assert_close(after, torch.stack((h, c), dim=1))


def carry_of(memory, started, state=None, steps=()):
    first = torch.zeros(started.shape[1], *memory.shape) if state is None else state
    return Carry({memory: lambda: first}, lambda: started, steps)


def test_steps_one_by_one_are_those_at_once():
    memory, inputs = Lstm(3, 4), torch.randn(6 * 2, 3)
    started = torch.rand(6, 2) < 0.3
    with carrying(carry_of(memory, started)):
        whole = memory(inputs)
    with carrying(carry_of(memory, started, steps=(4,))):
        torch.testing.assert_close(memory(inputs[:8]), whole[:8])
    with carrying(carry_of(memory, started)) as carry:
        one_by_one = [memory(inputs[2 * t : 2 * t + 2]) for t in range(6)]
        assert carry.after(memory).shape == (2, 2, 4)
    torch.testing.assert_close(torch.cat(one_by_one), whole)


def test_models_with_it_have_the_features_of_nature():
    nets = ActorCritic(4, "lstm", 0.1), QNetwork(4, "lstm", 0.1, layer_norm=True)
    seen = torch.randint(256, (2 * 3, 4, 84, 84), dtype=torch.uint8)
    for net in nets:
        memory = net.features[1]
        assert isinstance(memory, Lstm) and memory.shape == (2, 26)
        with carrying(carry_of(memory, torch.zeros(2, 3, dtype=torch.bool))):
            found = net(seen)
        found = found if isinstance(found, tuple) else (found,)
        assert found[0].shape == (6, 4) and all(one.isfinite().all() for one in found)


# Every on-policy algorithm ------------------------------------------------------------------------


class Vectors(nn.Module):
    """A network of vectors with a memory, in place of one of pictures."""

    def __init__(self, outputs, inputs=3, size=16):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(inputs, size), nn.Tanh(), Lstm(size, size))
        self.heads = nn.Linear(size, outputs)

    def forward(self, observations):
        return self.heads(self.features(observations.float() / 255))


class Heads(Vectors):
    """Policy and value."""

    def forward(self, observations):
        return policy_and_value(super().forward(observations))


class Saved(MemoryEnv):
    """MemoryEnv that goes on from a checkpoint."""

    def state_dict(self):
        random = self.random.bit_generator.state
        return {"random": random, "secret": self.secret, "step": self.step_number}

    def load_state_dict(self, state):
        self.random = np.random.default_rng()
        self.random.bit_generator.state = state["random"]
        self.secret, self.step_number = state["secret"], state["step"]


def on_memory_env(algorithm, env=MemoryEnv):
    """The algorithm on MemoryEnv, where only what remembers the first observation is paid."""

    class OnMemoryEnv(algorithm):
        environment = classmethod(lambda cls, args, num_envs, device: env(num_envs))

        def networks(self, num_actions):
            # The settings are read, as they are where there are pictures.
            (name,) = super().networks(num_actions)
            return {name: Vectors(num_actions) if name == "q" else Heads(num_actions + 1)}

    return OnMemoryEnv


ALGORITHMS = {
    # Steps of which episodes, of four with the reset, are no divisors: states go on in them.
    "A2C": (a2c.A2C, a2c.Args, {"num_batches": 1, "num_steps": 9, "warmup_steps": 0}, 300),
    "A2C with groups, beside": (a2c.A2C, a2c.Args, {
        "num_batches": 4, "num_steps": 9, "warmup_steps": 0, "lag": 1}, 500),
    "PPO": (ppo.PPO, ppo.Args, {"num_steps": 18, "minibatch_size": 144}, 300),
    "PPO beside": (ppo.PPO, ppo.Args, {"num_steps": 18, "minibatch_size": 144, "lag": 1}, 300),
    "PQN": (pqn.PQN, pqn.Args, {"num_steps": 18, "minibatch_size": 144,
                                "last_epsilon": 0.0}, 500),
    "REINFORCE": (reinforce.Reinforce, reinforce.Args, {"num_steps": 18}, 600),
    "n-step": (reinforce.Reinforce, reinforce.Args, {"num_steps": 15, "n_step": 5}, 600),
}  # fmt: skip


def trainer_of(name, passes=None, kind=None, **changes):
    algorithm, settings, more, _ = ALGORITHMS[name]
    settings_of = {"num_envs": 32, "learning_rate": 1e-2, "gamma": 0.9, "model": "lstm",
                   "width": 0.05, "num_threads": 1, "total_frames": 32 * 4 * 4000}  # fmt: skip
    args = settings(device="cpu", **{**settings_of, **more, **changes}).on(CPU)
    args.check(1)
    return Trainer(kind or on_memory_env(algorithm), args, ProcessGroup(0, 1, CPU), passes)


@pytest.mark.parametrize("name", few(ALGORITHMS, ("PPO beside", "n-step")))
def test_an_algorithm_remembers_with_it(name):
    trainer, steps = trainer_of(name), ALGORITHMS[name][3]
    total, episodes = scores_after(trainer, steps, 100)
    # Without memory it is 0; 1 is the most.
    assert episodes > 100 and total / episodes > 0.7


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_training_with_it_goes_on_exactly(name):
    make = functools.partial(trainer_of, name, kind=on_memory_env(ALGORITHMS[name][0], Saved))
    assert_same(state_after(make, 4, restart=2), state_after(make, 4))


@pytest.mark.parametrize("name", ["A2C", "PPO", "PQN", "n-step"])
def test_chunks_and_passes_change_nothing_but_rounding(name):
    found = []
    for passes, chunk in ((None, 65_536), (Passes(merge=False, alias=False), 65_536), (None, 40)):
        trainer = trainer_of(name, passes, learner_chunk=chunk)
        for _ in range(3):
            trainer.iterate()
        assert chunk > 40 or trainer.learner.work.at_once < trainer.learner.work.samples
        (net,) = trainer.nets.trained.values()
        found.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-3, atol=1e-4)


# States are those of acting -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["A2C", "PPO", "PPO beside"])
def test_learning_begins_with_the_state_that_acting_had(name):
    """Without a learning rate, what is learned from has the log-probabilities of acting."""
    algorithm, differences = ALGORITHMS[name][0], []

    class Compared(on_memory_env(algorithm)):
        def loss(self, nets, batch):
            flat = batch.actions.dim() == 1
            found = nets.net(batch.observations if flat else batch.observations.flatten(0, 1))
            log_pi = found[0][: batch.actions.numel()]
            chosen = log_pi.gather(1, batch.actions.reshape(-1, 1)).flatten()
            apart = (chosen - batch.log_mu.flatten()) * batch.played.flatten()
            differences.append(float(apart.detach().abs().max()))
            return super().loss(SimpleNamespace(net=lambda _: found), batch)

    trainer = trainer_of(name, kind=Compared, learning_rate=1e-30, learner_chunk=65_536)
    differences.clear()
    for _ in range(20):
        trainer.iterate()
    assert len(differences) > 3 and max(differences) < 1e-5
    differences.clear()
    for recurrent, store in trainer.plan.storage.far.items():
        if recurrent.name.startswith("memory of net"):
            take = store.take
            store.take = lambda slots, envs, take=take: take(slots, envs) + 1.0
    for _ in range(8):
        trainer.iterate()
    assert max(differences) > 1e-3  # it can fail


def test_values_of_a_phase_are_those_of_acting_where_they_can_be():
    trainer = trainer_of("PPO")
    assert "evaluate values: 18 of 19 are act's own" in trainer.plan.notes


# Evaluation ---------------------------------------------------------------------------------------


def test_an_evaluated_episode_keeps_its_state_when_others_end():
    torch.manual_seed(0)
    net = Heads(3)
    seen = torch.randn(6, 5, 3) * 255
    episodes = Policy(lambda one: net(one)[0], {"net": net}).begin(5, CPU)
    memory = net.features[2]
    with carrying(carry_of(memory, torch.zeros(6, 5, dtype=torch.bool))), torch.no_grad():
        wanted = net(seen.flatten(0, 1))[0].view(6, 5, 2)
    which = np.arange(5)
    with torch.no_grad():
        for t in range(6):
            found = episodes.scores(seen[t, which], None if len(which) == 5 else which)
            torch.testing.assert_close(found, wanted[t, which])
            which = which[which != 4 - t] if t < 3 else which


def test_a_training_is_evaluated_and_watched_with_its_memory(tmp_path, capsys):
    from cule.train import watch
    from cule.train.evaluate import evaluation

    folder = tmp_path / "run"
    args = a2c.Args(
        device="cpu", game="breakout", model="lstm", width=0.05, num_envs=4, num_batches=1,
        num_steps=4, warmup_steps=0, num_threads=1, total_frames=400, folder=folder,
        eval_episodes=2, eval_max_frames=200, progress=False, plot=False, logger="none",
    )  # fmt: skip
    train.train(a2c.A2C, args)
    evaluation.evaluate(evaluation.Args(folder, episodes=3, max_frames=200, device="cpu",
                                        num_threads=1, progress=False))  # fmt: skip
    scores = watch.watch(watch.Args(folder, tmp_path / "video.gif", episodes=1, max_frames=200,
                                    device="cpu", progress=False, num_threads=1))  # fmt: skip
    assert len(scores) == 1
    assert re.search(r"breakout, A2C.* after 4\d\d frames: score", capsys.readouterr().out)


# A memory of one's own ----------------------------------------------------------------------------


class Trace(Memory):
    """A decaying mean of the inputs."""

    def unroll(self, inputs, state, started):
        outputs = []
        for step, begins in zip(inputs, started, strict=True):
            state = torch.where(begins.unsqueeze(1), 0.0, state) * 0.9 + step
            outputs.append(state)
        return torch.stack(outputs), state


class Tracing(Vectors):
    def __init__(self, outputs):
        super().__init__(outputs)
        self.features = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), Trace((16,)), nn.Tanh())


def test_a_memory_of_ones_own_works_alike():
    class Own(on_memory_env(pqn.PQN)):
        def networks(self, num_actions):
            super().networks(num_actions)
            return {"q": Tracing(num_actions)}

    trainer = trainer_of("PQN", kind=Own)
    total, episodes = scores_after(trainer, 600, 100)
    assert total / episodes > 0.7
