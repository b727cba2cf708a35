"""All algorithms: they learn what pays on envs of one's own, write rows, refuse bad settings."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from scripted import SignalEnv
from torch import nn
from training_runs import scores_after

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.trainer import Trainer
from examples.a2c_vtrace import train as a2c
from examples.dqn import dqn
from examples.ppo import ppo
from examples.pqn import pqn
from examples.rainbow import btr, rainbow
from examples.reinforce import reinforce
from tests.support.marks import few

CPU = torch.device("cpu")
TINY = {"device": "cpu", "width": 0.1, "num_threads": 1}
QUIET = {**TINY, "progress": False, "plot": False, "logger": "none", "eval_episodes": 0}
SAMPLED = {"memory": 1600, "first_update": 160, "minibatch_size": 16, "updates_at_once": 1}
PROGRAMS = {
    "A2C+V-trace": (a2c.A2C, a2c.Args, {"num_batches": 2, "num_steps": 4, "warmup_steps": 0}),
    "PPO": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 32}),
    "DQN": (dqn.DQN, dqn.Args, {"memory": 1600, "first_update": 160, "minibatch_size": 32}),
    "prioritized double DQN, n = 3": (
        dqn.DQN,
        dqn.Args,
        {
            "memory": 1600,
            "first_update": 160,
            "minibatch_size": 32,
            "n_step": 3,
            "double": True,
            "prioritized": True,
        },
    ),
    "Rainbow": (rainbow.Rainbow, rainbow.Args, SAMPLED),
    "BTR": (btr.BTR, btr.Args, SAMPLED),
    "PQN": (pqn.PQN, pqn.Args, {"num_steps": 8, "minibatch_size": 32}),
    "Reinforce": (reinforce.Reinforce, reinforce.Args, {"num_steps": 8}),
}


def on_signals(algorithm):
    """The same algorithm on envs that need no emulator, which are its own."""

    class OnSignals(algorithm):
        @classmethod
        def environment(cls, args, num_envs, device):
            return SignalEnv(num_envs)

    return OnSignals


class Thirds(nn.Module):
    """A pixel of every 28x28: all that SignalEnv shows, without convolutions."""

    def forward(self, observations):
        return observations[:, :, ::28, ::28].flatten(1).float() / 255


def on_thirds(algorithm):
    """The same on SignalEnv with networks that see thirds, and keep their heads."""

    class OnThirds(on_signals(algorithm)):
        def networks(self, num_actions):
            given = super().networks(num_actions)
            for net in given.values():
                if isinstance(net, nn.Module):
                    head = net.heads if hasattr(net, "heads") else net.values
                    net.features = nn.Sequential(
                        Thirds(), nn.Linear(36, head.in_features), nn.ReLU()
                    )
            return given

    return OnThirds


# What makes each learn in a few hundred steps; with PPO and A2C also beside the next steps.
LEARNING = {
    "A2C": (a2c.A2C, a2c.Args, {"num_batches": 1, "num_steps": 2, "steps_per_update": 2,
                                "warmup_steps": 0, "learning_rate": 3e-3, "seed": 1}, 100),
    "A2C beside": (a2c.A2C, a2c.Args, {"num_batches": 4, "num_steps": 4, "warmup_steps": 0,
                                       "lag": 1, "learning_rate": 3e-3, "seed": 1}, 100),
    "PPO": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 64, "learning_rate": 3e-3}, 80),
    "PPO beside": (ppo.PPO, ppo.Args, {"num_steps": 8, "minibatch_size": 64, "lag": 1,
                                       "learning_rate": 3e-3}, 80),
    "DQN": (dqn.DQN, dqn.Args, {
        "memory": 3200, "first_update": 320, "minibatch_size": 64, "learning_rate": 2e-3,
        "gamma": 0.5, "epsilon_frames": 32 * 4 * 60, "target_every": 25,
        "last_epsilon": 0.0}, 80),
    "prioritized": (dqn.DQN, dqn.Args, {
        "memory": 3200, "first_update": 320, "minibatch_size": 64, "learning_rate": 2e-3,
        "gamma": 0.5, "epsilon_frames": 32 * 4 * 60, "target_every": 25, "last_epsilon": 0.0,
        "n_step": 3, "prioritized": True, "double": True}, 80),
    "PQN": (pqn.PQN, pqn.Args, {"num_steps": 8, "minibatch_size": 32, "learning_rate": 2e-3,
                                "gamma": 0.5, "total_frames": 32 * 4 * 200,
                                "exploration_fraction": 0.3, "last_epsilon": 0.0}, 80),
    "REINFORCE": (reinforce.Reinforce, reinforce.Args, {"num_steps": 8, "learning_rate": 5e-3,
                                                        "gamma": 0.5}, 240),
    "n-step": (reinforce.Reinforce, reinforce.Args, {
        "num_steps": 8, "n_step": 2, "learning_rate": 5e-3, "gamma": 0.5}, 240),
}  # fmt: skip


@pytest.mark.parametrize("name", few(LEARNING, ("PPO beside", "prioritized", "PQN")))
def test_algorithm_learns_what_pays(name):
    algorithm, settings, changes, steps = LEARNING[name]
    args = settings(**TINY, **{"num_envs": 32, "total_frames": 10**6, **changes}).on(CPU)
    args.check(1)
    # One learns from pictures with the published network.
    kind = on_signals(algorithm) if name == "A2C" else on_thirds(algorithm)
    trainer = Trainer(kind, args, ProcessGroup(0, 1, CPU))
    total, episodes = scores_after(trainer, steps, 40)
    # 8 is the most there is; chance gives -2.7.
    assert episodes > 30 and total / episodes > 4


class Normalized(nn.Module):
    """A network with a state that a pass changes."""

    def __init__(self, net):
        super().__init__()
        self.net, self.passes = net, 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, observations):
        self.passes += 1
        self.seen += 1
        return self.net(observations)


class NormalizedPPO(ppo.PPO):
    def networks(self, num_actions):
        return {"net": Normalized(super().networks(num_actions)["net"])}


@pytest.mark.parametrize("lag", [0, 1])
def test_warming_up_makes_the_passes_and_changes_nothing(lag):
    args = ppo.Args(num_envs=8, num_steps=4, minibatch_size=8, lag=lag, **TINY).on(CPU)
    warm = Trainer(on_signals(NormalizedPPO), args, ProcessGroup(0, 1, CPU))
    warm.warm_up()
    random = torch.get_rng_state()
    cold = Trainer(on_signals(NormalizedPPO), args, ProcessGroup(0, 1, CPU))
    assert torch.equal(random, torch.get_rng_state())
    nets = [[*t.nets.trained.values(), *t.nets.acting.values()] for t in (warm, cold)]
    passes = [sum(net.passes for net in set(some)) for some in nets]
    assert passes[0] == passes[1] + 2
    assert [float(net.seen) for net in nets[0]] == [float(net.seen) for net in nets[1]]
    for trainer in (warm, cold):
        torch.set_rng_state(random)
        for _ in range(3):
            trainer.iterate()
            if trainer is warm:
                trainer.warm_up()
    states = warm.state_dict(), cold.state_dict()
    attributes = [state.pop("attributes") for state in states]
    assert attributes[0] == attributes[1]
    torch.testing.assert_close(*states, rtol=0, atol=0)


@pytest.mark.parametrize("optimizer", ["adam", "muon", "rmsprop"])
def test_warming_up_makes_an_update_and_takes_it_back(optimizer, monkeypatch):
    """Also after updates, when the optimizer has a state."""
    args = ppo.Args(num_envs=8, num_steps=4, minibatch_size=8, optimizer=optimizer, **TINY).on(CPU)
    trainer = Trainer(on_signals(ppo.PPO), args, ProcessGroup(0, 1, CPU))
    learner, weights = trainer.learner, []
    apply = learner.apply_gradient

    def watched():
        learner.weights.gradient += 0.1
        apply()
        weights.append([p.detach().clone() for p in learner.weights.parameters])

    for updated in (False, True):
        if updated:
            trainer.iterate()
            assert learner.optimizer.state
        before = copy.deepcopy(learner.state_dict())
        with monkeypatch.context() as patch:
            patch.setattr(learner, "apply_gradient", watched)
            trainer.warm_up()
        torch.testing.assert_close(learner.state_dict(), before, rtol=0, atol=0)
        assert not any(map(torch.equal, weights.pop(), before["weights"])) and not weights


@pytest.mark.parametrize("count", [1, 2])
def test_a_training_knows_how_many_share_its_device(count, monkeypatch, tmp_path):
    files = [str(tmp_path / f"turn-{number}") for number in range(count)]
    monkeypatch.setenv("CULE_GPU_LOCKS", json.dumps(files))
    args = ppo.Args(
        num_envs=8, num_steps=4, minibatch_size=8, folder=tmp_path / "run", total_frames=512,
        **QUIET,
    )  # fmt: skip
    row = train.train(on_signals(ppo.PPO), args)
    assert row.get("trainings_on_gpu", 1) == count


@pytest.mark.parametrize("name", ["A2C+V-trace", "PPO"])
def test_the_weight_of_the_entropy_falls(name):
    """By frames, and the loss has the weight of now."""
    algorithm, settings, changes = PROGRAMS[name]
    asked = {**TINY, **changes, "num_envs": 8, "total_frames": 1024, "ent_coef": 0.5}
    trainer = Trainer(
        on_signals(algorithm), settings(**asked, anneal_ent=True).on(CPU), ProcessGroup(0, 1, CPU)
    )
    assert trainer.args.anneals and not a2c.Args().anneals
    seen = []
    loss = trainer.learner.loss

    def watched(nets, batch):
        values = loss(nets, batch)
        weight = (values["policy_loss"] + 0.5 * values["value_loss"] - values["loss"]).detach()
        seen.append(float(weight / values["entropy"].detach()))
        return values

    trainer.learner.loss = watched
    while trainer.frames < 1024:
        seen.clear()
        frames = trainer.frames
        trainer.iterate()
        assert seen == pytest.approx([0.5 * (1 - frames / 1024)] * len(seen), rel=1e-3)
    assert frames > 512 and seen


@pytest.mark.parametrize(
    ("name", "emulator"),
    # ale-py's envs are the same ones for all algorithms: those that replay, and those that do not.
    [*((name, "cule") for name in PROGRAMS), ("A2C+V-trace", "ale-py"), ("DQN", "ale-py")],
)
def test_algorithm_runs_and_writes_a_row(name, emulator, tmp_path):
    algorithm, settings, changes = PROGRAMS[name]
    path = tmp_path / "results.jsonl"
    asked = {**QUIET, **changes, "num_envs": 8, "emulator": emulator, "folder": tmp_path}
    row = train.train(algorithm, settings(**asked, total_frames=1000, results=path))
    assert json.loads(path.read_text()) == row
    assert (row["system"], row["algorithm"]) == (emulator, name)
    assert 1000 <= row["frames"] < 1300 and row["updates"] > 0
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["grad_norm"] > 0 or name == "Reinforce"


def test_diagnostics_are_those_of_the_field(tmp_path):
    algorithm, settings, changes = PROGRAMS["PPO"]
    args = settings(**QUIET, **changes, num_envs=8, folder=tmp_path, total_frames=1000)
    train.train(algorithm, args)
    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    wanted = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction",
              "explained_variance", "grad_norm", "score", "reward")  # fmt: skip
    assert set(wanted) <= set(line)
    assert 0 <= line["clip_fraction"] <= 1 and line["approx_kl"] >= 0 and line["grad_norm"] > 0
    assert line["explained_variance"] <= 1


@pytest.mark.parametrize("name, changes, message", [
    ("PPO", {"minibatch_size": 33}, r"minibatch of Learning to divide num_envs times steps \(64\)"),
    ("PPO", {"minibatch_size": 1}, "minibatch_size to be at least 2, got 1"),
    ("PPO", {"gamma": -0.1}, "gamma to be from 0 to 1, got -0.1"),
    ("PPO", {"lag": 2}, "lag of Learning to be 0 or 1, got 2"),
    ("DQN", {"memory": 31}, r"at least 4 steps of all envs \(32\), got 31 and 160"),
    ("DQN", {"target_every": 0}, "target_every to be at least 1, got 0"),
    ("DQN", {"n_step": 9, "memory": 95}, r"at least 12 steps of all envs \(96\), got 95 and 160"),
    ("DQN", {"alpha": 0.7}, "expected alpha with prioritized, got it without"),
    ("DQN", {"epsilon_frames": 0}, "epsilon_frames to be at least 1, got 0"),
    ("Reinforce", {"num_steps": -3}, "num_steps to be at least 1, got -3"),
    ("PQN", {"num_steps": -3}, "expected steps of Learning to be at least 1, got -3"),
    ("PQN", {"model": "impala"}, "model to be nature where layers are normalized"),
    ("A2C+V-trace", {"num_batches": 3}, "num_envs to be a multiple of num_batches"),
])  # fmt: skip
def test_algorithm_refuses_settings_that_do_not_fit(name, changes, message, tmp_path):
    algorithm, settings, more = PROGRAMS[name]
    asked = {**QUIET, **more, "num_envs": 8, "folder": tmp_path, "total_frames": 1000} | changes
    with pytest.raises(ValueError, match=message):
        train.train(algorithm, settings(**asked))
