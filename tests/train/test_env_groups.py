"""Training with envs on the CPU in groups: what is exactly as without groups, resume, mistakes."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from test_algorithms import PROGRAMS, TINY
from torch import nn
from training_runs import SMALL, assert_same, saved, settings, trained, without_times

from cule import train
from cule.env.flights import Flights
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.async_cpu import AsyncCpuEnvs
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
GAME = {"game": "breakout", "num_envs": 8, "max_episode_frames": 150, "life_loss_ends": True}
STEPS = 48  # in which episodes end, as they have 38 at most


def trainer_of(name, groups, device=CPU, **changes):
    algorithm, settings, own = PROGRAMS[name]
    args = settings(**{**TINY, **GAME, **own, **changes}, env_groups=groups)
    args = dataclasses.replace(args, env_device="cpu").on(device)
    args.check(1)
    return Trainer(algorithm, args, ProcessGroup(0, 1, device))


class Exact(nn.Module):
    """A policy whose numbers do not depend on how many envs there are: sums of integers."""

    def __init__(self, num_actions):
        super().__init__()
        self.weights = nn.Parameter(torch.arange(num_actions, dtype=torch.float32) / 8)

    def forward(self, observations):
        bright = observations.flatten(1).long().sum(1) % 16
        return (bright.float().unsqueeze(1) * self.weights).log_softmax(1), bright.float()


def on_exact(algorithm):
    """The same algorithm with this policy."""

    class OnExact(algorithm):
        def networks(self, num_actions):
            return {"net": Exact(num_actions)}

    return OnExact


def stored(trainer):
    """All values that are kept of steps, by name."""
    return {
        recurrent.name: {key: value.clone() for key, value in store.state_dict().items()}
        for recurrent, store in trainer.plan.storage.far.items()
        if recurrent.over == "step"
    }


@pytest.mark.parametrize("groups, name", [(2, "PPO"), (3, "A2C+V-trace"), (8, "A2C+V-trace")])
def test_groups_play_what_all_play_together(name, groups):
    """Bit for bit, where the network computes the same for any number of envs."""
    algorithm, args, own = PROGRAMS[name]
    found = []
    for count in (1, groups):
        changes = {**TINY, **GAME, **own, "learning_rate": 0.0, "num_threads": 2}
        settings = args(**{**changes, "width": 1.0}, env_groups=count).on(CPU)
        trainer = Trainer(on_exact(algorithm), settings, ProcessGroup(0, 1, CPU))
        assert (trainer.collector.async_envs is not None) is (count > 1)
        while trainer.steps < STEPS:
            trainer.iterate()
        found.append((stored(trainer), trainer.collector.state_dict(), torch.get_rng_state()))
        trainer.close()
    assert_same(*found)


def resumed(name, first, device=CPU, **changes):
    """The state after some steps, of which those from `first` on are another trainer's."""
    trainer = trainer_of(name, 3, device, **changes)
    while trainer.steps < STEPS:
        if trainer.steps == first:
            state = copy.deepcopy(trainer.state_dict())
            trainer.close()
            trainer = trainer_of(name, 3, device, **changes)
            trainer.load_state_dict(state)
        trainer.iterate()
    state = copy.deepcopy(trainer.state_dict())
    trainer.close()
    return state


def some_and_slow(fast):
    """Every algorithm with and without a lag; what is not among the fast ones is slow."""
    return [
        pytest.param(name, lag, marks=[] if (name, lag) in fast else pytest.mark.slow)
        for name in PROGRAMS
        for lag in (0, 1)
    ]


@pytest.mark.parametrize("name, lag", some_and_slow({
    ("A2C+V-trace", 0), ("PPO", 1), ("prioritized double DQN, n = 3", 0), ("Reinforce", 0),
}))  # fmt: skip
def test_every_algorithm_learns_in_groups_and_resumes_exactly(name, lag):
    expected = resumed(name, STEPS, lag=lag)
    assert_same(resumed(name, 24, lag=lag), expected)
    assert expected["updates"] > 0


def test_run_in_groups_resumed_is_as_if_never_stopped(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    changes = {"env_groups": 2, "env_device": "cpu"}
    trained(settings(whole, total_frames=4_000, **changes))
    trained(settings(parts, total_frames=2_000, **changes))
    trained(settings(parts, total_frames=4_000, resume=True, **changes))
    assert_same(saved(whole), saved(parts))
    assert without_times(whole)[-1] == without_times(parts)[-1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env_groups": 0}, "env_groups to be at least 1, got 0"),
        ({"env_groups": 9}, r"env_groups to be at most the envs of a process \(8\), got 9"),
        ({"env_groups": 2, "emulator": "ale-py"}, "emulator cule with env_groups or env_device"),
    ],
)
def test_groups_that_do_not_fit_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        trained(settings(tmp_path, **{**SMALL, **changes}))


def test_groups_are_for_atari_envs_on_the_cpu():
    from test_algorithms import on_signals

    algorithm, args, own = PROGRAMS["PPO"]
    settings = args(**{**TINY, **own, "num_envs": 8, "env_groups": 2}).on(CPU)
    with pytest.raises(ValueError, match="env_groups to be 1, unless the envs are an AtariEnv on"):
        Trainer(on_signals(algorithm), settings, ProcessGroup(0, 1, CPU))


@pytest.mark.gpu
@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_learner_on_a_gpu_sees_what_the_cpu_envs_play(groups, graphs):
    """With the exact policy: the same steps as with everything on the CPU, bit for bit, except
    what the devices draw at random; here the actions are the likeliest ones."""

    def likeliest(kind):
        class Likeliest(on_exact(kind)):
            def act(self, nets, observations):
                log_pi, _ = nets.net(observations)
                actions = log_pi.argmax(1)
                return {
                    "actions": actions,
                    "log_mu": log_pi.gather(1, actions.unsqueeze(1)).squeeze(1),
                }

        return Likeliest

    algorithm, args, own = PROGRAMS["A2C+V-trace"]
    found = []
    for device, count in ((CPU, 1), (torch.device("cuda", 0), groups)):
        changes = {**TINY, **GAME, **own, "learning_rate": 0.0, "env_groups": count,
                   "num_threads": 2, "device": str(device), "env_device": "cpu", "bf16": False,
                   "channels_last": False, "cuda_graphs": graphs, "width": 1.0}  # fmt: skip
        trainer = Trainer(
            likeliest(algorithm), args(**changes).on(device), ProcessGroup(0, 1, device)
        )
        for _ in range(40):
            trainer.iterate()
        kept = {
            name: {key: value.cpu() for key, value in values.items()}
            for name, values in stored(trainer).items()
            if name in ("observations", "actions", "rewards", "discounts", "played")
        }
        episodes = {k: v.cpu() for k, v in trainer.collector.episodes.state_dict().items()}
        found.append((kept, episodes))
        trainer.close()
    assert_same(*found)


@pytest.mark.gpu
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("lag", [0, 1])
def test_every_algorithm_learns_on_a_gpu_from_envs_on_the_cpu_and_resumes_exactly(name, lag):
    changes = {"num_threads": 2, "lag": lag, "deterministic": True}
    gpu = torch.device("cuda", 0)
    expected = resumed(name, STEPS, gpu, **changes)
    found = resumed(name, 40, gpu, **changes)
    for key in ("envs", "episodes"):
        assert_same(*(s["plan"]["objects"]["envs"][key] for s in (found, expected)))
    assert_same(found["networks"], expected["networks"])


def test_the_host_prepares_the_next_group_only_if_it_need_not_wait_for_it(monkeypatch):
    """The device works for a group meanwhile; but who waits would keep its actions from it."""
    calls, states = [], []
    for name in ("staged", "send"):
        method = getattr(AsyncCpuEnvs, name)
        monkeypatch.setattr(
            AsyncCpuEnvs, name,
            lambda self, part, name=name, method=method: calls.append((name, part))
            or method(self, part),
        )  # fmt: skip
    for done in (True, False):
        monkeypatch.setattr(Flights, "is_done", lambda self, flight, done=done: done)
        trainer = trainer_of("PPO", 3)
        while trainer.steps < STEPS:
            trainer.iterate()
        states.append(copy.deepcopy(trainer.state_dict()))
        trainer.close()
        order = [("staged", 0), ("send", 0), ("staged", 1), ("send", 1), ("staged", 2), ("send", 2)]
        if done:  # each is prepared before the one before it is sent
            order[1:5] = [("staged", 1), ("send", 0), ("staged", 2), ("send", 1)]
        assert calls[-6:] == order
        assert len(calls) % 6 == 0
        calls.clear()
    assert_same(*states)


def test_settings_name_the_groups(tmp_path):
    assert train.Args().env_groups == 1 and train.Args().env_device is None


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_learning_beside_groups_is_learning_after_them(groups, device):
    algorithm, kind, _ = PROGRAMS["Reinforce"]
    place = torch.device(device)
    # A game with another reward at each step.
    changes = {
        **TINY, **GAME, "game": "skiing", "num_steps": 24, "n_step": 3, "learning_rate": 1e-3,
        "num_threads": 2, "rewards": "root",
    }  # fmt: skip
    found = []
    for beside in (False, True):
        args = kind(**changes, env_groups=groups, env_device="cpu", deterministic=True).on(place)
        processes = ProcessGroup(0, 1, place)
        trainer = Trainer(algorithm, args, processes, Passes(beside=beside))
        follows = [group.follows for group in trainer.plan.groups if group.follows is not None]
        assert len(follows) == beside  # on another stream than playing, on a GPU
        assert (trainer.collector.async_envs is not None) == (groups > 1 or device == "cuda")
        for _ in range(4):
            trainer.iterate()
        found.append((trainer.collector.state_dict(), trainer.state_dict()["networks"]))
        trainer.close()
    assert_same(*found)
