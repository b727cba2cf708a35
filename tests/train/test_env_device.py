"""--env-device cpu: the same envs wherever they are emulated, for each algorithm and layout."""

from __future__ import annotations

import re

import pytest
import torch
from hashed import Hashed
from test_algorithms import PROGRAMS, TINY
from test_decoupled import assert_learned_the_same, launched, logged
from test_env_groups import GAME, on_exact, stored, trainer_of
from training_runs import SMALL, assert_same, one_thread_each, saved, settings, state_after, trained

from cule import train
from cule.train.command import options_of
from cule.train.distributed.process_group import ProcessGroup
from cule.train.trainer import Trainer
from tests.support import warm

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
EXAMPLES = {
    "A2C+V-trace": "examples.a2c_vtrace.train",
    "PPO": "examples.ppo.ppo",
    "DQN": "examples.dqn.dqn",
    "PQN": "examples.pqn.pqn",
    "Reinforce": "examples.reinforce.reinforce",
}


def slow_but(fast):
    return [
        name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES
    ]


@pytest.mark.parametrize("name", slow_but({"A2C+V-trace", "DQN"}))
def test_on_a_cpu_it_is_the_plain_training(name):
    algorithm, kind, own = PROGRAMS[name]

    def plain():
        args = kind(**{**TINY, **GAME, **own}).on(CPU)
        return Trainer(algorithm, args, ProcessGroup(0, 1, CPU))

    there = state_after(lambda: trainer_of(name, 1), 24)
    assert_same(there, state_after(plain, 24))


def far(name, run, **changes):
    """Trains with one process that plays in groups, and one that learns."""
    more = {"folder": run, "layout": "decoupled:1+1", **in_groups(name), **changes}
    words = ["-m", EXAMPLES[name], *options_of(more)]
    for done in warm.run_ranks(2, words, env=one_thread_each()):
        assert done.returncode == 0, done.stderr


def in_groups(name):
    common = {
        key: SMALL[key]
        for key in (
            "game", "device", "num_envs", "log_every", "checkpoint_every", "eval_episodes",
            "num_threads", "max_episode_frames", "progress", "logger", "plot",
        )
    }  # fmt: skip
    more = {"width": 0.1, "env_device": "cpu", "env_groups": 2, "lag": 1, "total_frames": 3000}
    return {**common, **PROGRAMS[name][2], **more}


# The others draw random numbers to learn, and process 0 has others than process 1.
@pytest.mark.parametrize("name", ["A2C+V-trace", pytest.param("Reinforce", marks=pytest.mark.slow)])
def test_groups_play_for_a_far_learner_as_for_a_near_one(name, tmp_path):
    algorithm, kind, _ = PROGRAMS[name]
    apart, one = tmp_path / "apart", tmp_path / "one"
    far(name, apart)
    train.train(algorithm, kind(**in_groups(name), folder=one))
    assert_learned_the_same(saved(apart), saved(one))
    acting, whole = saved(apart, 1)["plan"]["objects"], saved(one)["plan"]["objects"]
    assert_same(acting["envs"], whole["envs"])
    assert logged(apart) == logged(one)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PPO", "DQN", "PQN"])
def test_groups_play_for_a_far_learner_the_same_each_time(name, tmp_path):
    for run in ("first", "again"):
        far(name, tmp_path / run)
    for rank in range(2):
        assert_same(saved(tmp_path / "first", rank), saved(tmp_path / "again", rank))
    assert saved(tmp_path / "first")["updates"] > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "layout", "more"),
    [
        (3, "decoupled:2+1", {"num_batches": 4}),
        (2, "decoupled:1+1", {}),
    ],
)
def test_groups_of_several_processes_are_one_process_with_their_envs(count, layout, more, tmp_path):
    several, one = tmp_path / "several", tmp_path / "one"
    more = {"lag": 1, "total_frames": 2000, **more}
    launched(count, several, "tests.train.hashed", layout=layout, num_envs=16, env_groups=2, **more)
    train.train(Hashed, settings(one, num_envs=16, **more))
    assert_learned_the_same(saved(several), saved(one))
    assert logged(several) == logged(one)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"env_device": "cpu", "multiprocessors": 8},
         "expected multiprocessors only with cule's envs on a GPU, got 8"),
        ({"multiprocessors": 8}, "expected multiprocessors only with cule's envs on a GPU, got 8"),
        ({"env_device": "cpu", "emulator": "ale-py"}, "expected emulator cule with env_groups or"),
    ],
)  # fmt: skip
def test_settings_that_would_have_no_effect_are_refused(changes, told, tmp_path):
    with pytest.raises(ValueError, match=re.escape(told)):
        trained(settings(tmp_path, **changes))


def test_envs_that_an_algorithm_brings_are_where_it_makes_them(tmp_path):
    told = "expected no env_device for envs that an algorithm brings, got 'cpu'"
    with pytest.raises(ValueError, match=told):
        train.train(Hashed, settings(tmp_path, env_device="cpu"))


def likeliest(algorithm):
    """The algorithm with a policy of whole numbers, which takes the likeliest action."""

    class Likeliest(on_exact(algorithm)):
        def act(self, nets, observations):
            log_pi, _ = nets.net(observations)
            actions = log_pi.argmax(1)
            chosen = log_pi.gather(1, actions.unsqueeze(1)).squeeze(1)
            return {"actions": actions, "log_mu": chosen}

    return Likeliest


@pytest.mark.gpu
@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("lag", [0, 1])
def test_a_gpu_learns_the_same_from_envs_of_either_device(lag, graphs):
    """The same steps, and from the same steps the same weights."""
    algorithm, kind, own = PROGRAMS["A2C+V-trace"]
    found = []
    for env_device in (None, "cpu"):
        changes = {
            **TINY, **GAME, **own, "device": "cuda", "env_device": env_device, "bf16": False,
            "channels_last": False, "cuda_graphs": graphs, "width": 1.0, "lag": lag,
            "deterministic": True, "learning_rate": 1e-3, "num_threads": 2,
        }  # fmt: skip
        trainer = Trainer(
            likeliest(algorithm), kind(**changes).on(GPU), ProcessGroup(0, 1, GPU)
        )  # fmt: skip
        for _ in range(40):
            trainer.iterate()
        steps = {
            name: values for name, values in stored(trainer).items()
            if name in ("observations", "actions", "rewards", "discounts", "played")
        }  # fmt: skip
        episodes = trainer.collector.episodes.state_dict()
        found.append((steps, episodes, trainer.state_dict()["networks"]))
        trainer.close()
    assert_same(*found)


@pytest.mark.gpu
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("layout", "count"), [("act@0+learn@0", 2), ("2act@0+learn@0", 3), ("apart:40", 1)]
)
def test_layouts_of_a_gpu_train_from_envs_on_the_cpu(layout, count, groups, tmp_path):
    launched(count, tmp_path, device="cuda", layout=layout, env_device="cpu", env_groups=groups,
             lag=1, total_frames=2000)  # fmt: skip
    assert saved(tmp_path)["updates"] > 10
