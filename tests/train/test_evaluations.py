"""Evaluations: which episodes count, on which emulator, and the threads that play them."""

from __future__ import annotations

import itertools
from contextlib import closing

import ale_py
import numpy as np
import pytest
import torch

import cule
from cule.rom import games
from cule.train.envs.emulator import EMULATORS, in_parts
from cule.train.evaluate import evaluation
from cule.train.evaluate.evaluator import Evaluator, groups_of
from cule.train.evaluate.policy import Policy
from cule.train.nn.models import sample
from tests.support.marks import few

CPU = torch.device("cpu")


def counted_steps(evaluator, monkeypatch):
    """The rewards of each step of an episode, by the seed with which the episode began."""
    given = {}

    def count(envs):
        begin, step, seeds = envs.reset, envs.step, []

        def reset(seed, count):
            begin(seed, count)
            seeds[:] = range(seed, seed + count)
            given.update({one: [] for one in seeds})

        def counted(numbers, actions):
            rewards, over = step(numbers, actions)
            for number, reward in zip(numbers, rewards, strict=True):
                given[seeds[number]].append(reward)
            return rewards, over

        monkeypatch.setattr(envs, "reset", reset)
        monkeypatch.setattr(envs, "step", counted)

    for envs in evaluator.envs:
        count(envs)
    return given


@pytest.mark.parametrize("emulator", EMULATORS)
def test_evaluate_counts_one_episode_of_each_env(emulator, monkeypatch):
    evaluator = Evaluator(
        "pong", 4, CPU, emulator=emulator, sticky=0.0, max_frames=300, num_threads=1
    )
    given = counted_steps(evaluator, monkeypatch)
    scores = evaluator.scores(Policy(lambda seen: torch.full((len(seen), 6), 1 / 6).log()), seed=0)
    evaluator.close()
    # Cut after 300 frames: 75 steps, in which the opponent wins points.
    assert {seed: len(rewards) for seed, rewards in given.items()} == dict.fromkeys(range(4), 75)
    assert scores.tolist() == [sum(given[seed]) for seed in range(4)] and (scores < 0).any()


def scores_and_steps(num_threads, monkeypatch, emulator="cule", **more):
    """The scores of 20 episodes, and the steps of each, by group."""
    evaluator = Evaluator(
        "breakout", 20, CPU, emulator=emulator, sticky=0.25, max_frames=1000,
        num_threads=num_threads,
    )  # fmt: skip
    given = counted_steps(evaluator, monkeypatch)

    def policy(observations):
        brightness = observations.float().mean(dim=(1, 2, 3)).unsqueeze(1)
        return (brightness * torch.tensor([0.01, 0.02, 0.01, 0.01])).log_softmax(1)

    scores = evaluator.scores(Policy(policy), seed=3, **more)
    evaluator.close()
    steps = [len(given.get(3 + number, [])) for number in range(20)]
    return scores, [steps[part] for part in in_parts(20, groups_of(20, torch.device("cpu")))]


@pytest.mark.parametrize("emulator", few(EMULATORS, ("cule",)))
def test_scores_do_not_depend_on_threads_and_no_env_waits_for_another(emulator, monkeypatch):
    scores, steps = scores_and_steps(1, monkeypatch, emulator)
    assert [len(group) for group in steps] == [6, 7, 7]
    assert len(set(scores)) > 3 and len({count for group in steps for count in group}) > 5
    for num_threads in (2, 70):
        again, same = scores_and_steps(num_threads, monkeypatch, emulator)
        assert (again == scores).all() and same == steps


def by_brightness(num_actions):
    """A policy whose actions depend on what it sees."""

    def policy(observations):
        brightness = observations.float().mean(dim=(1, 2, 3)).unsqueeze(1)
        return (brightness * torch.linspace(0.01, 0.03, num_actions)).log_softmax(1)

    return policy


@pytest.mark.parametrize(
    "emulator, sticky",
    few([("ale-py", 0.0), ("ale-py", 0.25), ("cule", 0.0)], [("ale-py", 0.25), ("cule", 0.0)]),
)
def test_scores_are_those_of_a_vector_env_whose_first_episodes_count(emulator, sticky):
    policy = by_brightness(6)
    evaluator = Evaluator(
        "space_invaders", 6, CPU, emulator=emulator, sticky=sticky, max_frames=1600, num_threads=2
    )
    scores = evaluator.scores(Policy(policy), seed=5)
    evaluator.close()
    env = ale_py.AtariVectorEnv(
        "space_invaders", 6, noop_max=30, reward_clipping=False, repeat_action_probability=sticky,
        max_num_frames_per_episode=1600, frameskip=4,
    )  # fmt: skip
    observations, _ = env.reset(seed=5)
    generator, expected, playing = torch.Generator().manual_seed(5), np.zeros(6), np.arange(6)
    while playing.size:
        actions = np.zeros(6, dtype=np.int64)
        actions[playing] = sample(policy(torch.from_numpy(observations[playing])), generator)
        observations, rewards, terminated, truncated, _ = env.step(actions)
        expected[playing] += rewards[playing]
        playing = playing[~(terminated | truncated)[playing]]
    env.close()
    assert scores.tolist() == expected.tolist() and len(set(scores)) > 2


def scores_on(emulator, game, episodes, **options):
    """The scores of episodes in which actions depend on each picture."""
    evaluator = Evaluator(game, episodes, CPU, emulator=emulator, num_threads=2, **options)
    try:
        policy = Policy(by_brightness(evaluator.envs[0].num_actions))
        return evaluator.scores(policy, seed=20).tolist()
    finally:
        evaluator.close()


@pytest.mark.parametrize("game, options", [
    ("breakout", {}),
    pytest.param("ms_pacman", {"full_action_space": True}, marks=pytest.mark.slow),
    # Games begin alike: policies' random numbers differ.
    pytest.param("video_pinball", {"noops": 0}, marks=pytest.mark.slow),
    ("qbert", {"max_frames": 1001, "full_action_space": True}),
    ("freeway", {"sticky": 1.0}),  # each frame repeats the action before, which is drawn from none
])  # fmt: skip
def test_cule_gives_the_scores_of_ale_py(game, options):
    options = {"sticky": 0.0, "max_frames": 1200, **options}
    episodes = 10 if game == "qbert" else 6  # more than 8 are two groups
    scores = scores_on("cule", game, episodes, **options)
    assert scores == scores_on("ale-py", game, episodes, **options)
    assert len(set(scores)) > 2 or options["sticky"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("game", [game.name for game in games()])
def test_cule_gives_the_scores_of_ale_py_in_every_game(game):
    options = {"sticky": 0.0, "max_frames": 8000}
    assert scores_on("cule", game, 10, **options) == scores_on("ale-py", game, 10, **options)


def test_a_policy_plays_a_modified_game():
    def up(observations):
        return torch.tensor([-torch.inf, 0.0, -torch.inf]).expand(len(observations), 3)

    found = []
    for patches in ([], ["disable_cars"], ["speed_mode", "invisible_mode"]):
        options = {"emulator": "cule", "sticky": 0.0, "max_frames": 1500, "patches": patches}
        evaluator = Evaluator("freeway", 4, CPU, num_threads=2, **options)
        found.append(evaluator.scores(Policy(up), seed=20).tolist())
        evaluator.close()
        with closing(cule.AtariEnv(
            "freeway", 4, "cpu", noop_max=30, max_num_frames_per_episode=1500, patches=patches,
            reward_clipping=False, reset_pool_size=0, num_threads=2,
        )) as env:  # fmt: skip
            env.reset(seed=[20, 21, 22, 23])
            scores, playing = torch.zeros(4), torch.ones(4, dtype=torch.bool)
            while playing.any():
                _, rewards, terminated, truncated, _ = env.step([1] * 4)
                scores += rewards * playing
                playing &= ~(terminated | truncated)
        assert scores.tolist() == found[-1]
    assert len({tuple(scores) for scores in found}) == 3


def test_a_gpu_has_few_groups():
    assert groups_of(64, torch.device("cuda")) == 1
    assert groups_of(100, torch.device("cuda")) == 2
    assert groups_of(100, torch.device("cpu")) == 13


def test_threads_of_an_evaluation_end_when_one_is_stopped(monkeypatch):
    calls = itertools.count()
    scores, steps = scores_and_steps(2, monkeypatch, stop=lambda: next(calls) >= 40)
    assert scores is None
    assert sum(max(group) for group in steps) == 40


def test_threads_of_an_evaluation_end_when_one_fails():
    evaluator = Evaluator(
        "pong", 20, CPU, emulator="cule", sticky=0.0, max_frames=100_000, num_threads=3
    )
    before, calls = torch.get_num_threads(), itertools.count()

    def policy(observations):
        if next(calls) == 10:
            raise RuntimeError("no memory")
        return torch.zeros(len(observations), 6)

    with pytest.raises(RuntimeError, match="no memory"):
        evaluator.scores(Policy(policy), seed=0)
    evaluator.close()
    assert next(calls) < 20
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("changes, message", [
    ({"episodes": 0}, "episodes to be from 1 to 1000000, got 0"),
    ({"sticky": (0.0, 3.0)}, "sticky to be from 0 to 1, got 3.0"),
    ({"max_frames": 0}, "max_frames to be from 1 to 2147483647, got 0"),
    ({}, "expected a run folder with checkpoints, as training writes it, got"),
    (
        {"patches": ("left_drift", "gravity")},
        "expected the emulator cule for patches left_drift, gravity, got ale-py",
    ),
])  # fmt: skip
def test_evaluate_refuses_settings_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        evaluation.evaluate(evaluation.Args(tmp_path, device="cpu", **changes))
