"""Evaluations on ale-py: which episodes count, and the threads that play them."""

from __future__ import annotations

import itertools

import ale_py
import numpy as np
import pytest
import torch

from cule.train.envs.emulator import in_parts
from cule.train.evaluate import evaluation
from cule.train.evaluate.evaluator import Evaluator, groups_of
from cule.train.evaluate.policy import Policy
from cule.train.nn.models import sample


def counted_steps(evaluator, monkeypatch):
    """The rewards of each step of an episode, by the seed with which the episode began."""
    given = {}

    def count(env):
        begin, receive, now = env.reset, env.recv, []

        def reset(*, seed):
            result = begin(seed=seed)
            now[:] = [given.setdefault(seed, [])]
            return result

        def recv():
            result = receive()
            if now:
                now[0].append(result[1][0])
            return result

        monkeypatch.setattr(env, "reset", reset)
        monkeypatch.setattr(env, "recv", recv)

    for group in evaluator.envs:
        for env in group:
            count(env)
    return given


def test_evaluate_counts_one_episode_of_each_env(monkeypatch):
    evaluator = Evaluator("pong", 4, torch.device("cpu"), sticky=0.0, max_frames=300, num_threads=1)
    given = counted_steps(evaluator, monkeypatch)
    scores = evaluator.scores(Policy(lambda seen: torch.full((len(seen), 6), 1 / 6).log()), seed=0)
    evaluator.close()
    # Cut after 300 frames: 75 steps, in which the opponent wins points.
    assert {seed: len(rewards) for seed, rewards in given.items()} == dict.fromkeys(range(4), 75)
    assert scores.tolist() == [sum(given[seed]) for seed in range(4)] and (scores < 0).any()


def scores_and_steps(num_threads, monkeypatch, **more):
    """The scores of 20 episodes, and the steps of each, by group."""
    evaluator = Evaluator(
        "breakout", 20, torch.device("cpu"), sticky=0.25, max_frames=4000, num_threads=num_threads,
    )  # fmt: skip
    given = counted_steps(evaluator, monkeypatch)

    def policy(observations):
        brightness = observations.float().mean(dim=(1, 2, 3)).unsqueeze(1)
        return (brightness * torch.tensor([0.01, 0.02, 0.01, 0.01])).log_softmax(1)

    scores = evaluator.scores(Policy(policy), seed=3, **more)
    evaluator.close()
    steps = [len(given.get(3 + number, [])) for number in range(20)]
    return scores, [steps[part] for part in in_parts(20, groups_of(20, torch.device("cpu")))]


def test_scores_do_not_depend_on_threads_and_no_env_waits_for_another(monkeypatch):
    scores, steps = scores_and_steps(1, monkeypatch)
    assert [len(group) for group in steps] == [6, 7, 7]
    assert len(set(scores)) > 3 and len({count for group in steps for count in group}) > 5
    for num_threads in (2, 70):
        again, same = scores_and_steps(num_threads, monkeypatch)
        assert (again == scores).all() and same == steps


def test_scores_are_those_of_a_vector_env_whose_first_episodes_count():
    def policy(observations):
        brightness = observations.float().mean(dim=(1, 2, 3)).unsqueeze(1)
        return (brightness * torch.tensor([0.01, 0.02, 0.01, 0.01, 0.01, 0.02])).log_softmax(1)

    evaluator = Evaluator(
        "space_invaders", 6, torch.device("cpu"), sticky=0.25, max_frames=4000, num_threads=2
    )
    scores = evaluator.scores(Policy(policy), seed=5)
    evaluator.close()
    env = ale_py.AtariVectorEnv(
        "space_invaders", 6, noop_max=30, reward_clipping=False, repeat_action_probability=0.25,
        max_num_frames_per_episode=4000, frameskip=4,
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
        "pong", 20, torch.device("cpu"), sticky=0.0, max_frames=100_000, num_threads=3
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
])  # fmt: skip
def test_evaluate_refuses_settings_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        evaluation.evaluate(evaluation.Args(tmp_path, device="cpu", **changes))
