"""Learning from a demonstration backwards: where episodes begin, what counts as success."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from training_runs import assert_same, saved, without_times

from cule import train
from cule.train.evaluate import evaluation
from examples.go_explore import explore
from examples.go_explore.demonstration import Demonstration
from examples.go_explore.robustify import Args, DemonstrationEnvs, Robustify, wanted

CPU = torch.device("cpu")
GAME = "ms_pacman"
SMALL = {
    "game": GAME, "device": "cpu", "num_envs": 6, "num_threads": 1, "every": 4, "spread": 2,
    "episodes": 6, "from_start": 0.0, "rehearse": 0.0, "sticky": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    """The file of a short one."""
    folder = tmp_path_factory.mktemp("explored")
    explore.explore(explore.Args(
        GAME, num_envs=8, max_cells=400, rounds=40, num_threads=1, progress=False, device="cpu",
        folder=folder,
    ))  # fmt: skip
    return folder / explore.BEST


def envs_of(path, **changes):
    args = Args(demonstration=path, **SMALL | changes).on(CPU)
    args.check(1)
    return DemonstrationEnvs(args, args.num_envs, CPU)


def play(envs, found, steps, wrong=False):
    """Plays what the demonstration does from each env's place on, or always nothing.

    Returns:
        The places where episodes began, in their order.
    """
    actions, begun = np.array(found.actions), []
    envs.reset(seed=0)
    for _ in range(steps):
        parts = envs._parts
        at = (parts["place"] * envs.args.every + parts["steps"]).numpy()
        chosen = np.where(at < len(actions), actions[np.minimum(at, len(actions) - 1)], 0)
        fresh = (parts["steps"] == 0).nonzero().squeeze(1)
        begun += parts["place"][fresh].tolist()
        envs.step(torch.from_numpy(chosen * (not wrong)))
    return begun


def test_who_does_what_was_demonstrated_succeeds_and_begins_earlier(demonstration):
    """Each episode scores what is left from its place on, until they begin at the start."""
    found = Demonstration.load(demonstration)
    envs = envs_of(demonstration, every=16, num_envs=12, episodes=4)
    places = len(envs._left)
    assert envs.first == places - 2 > 5 and envs._left[0] == found.score
    begun = play(envs, found, 6000)
    assert envs.first == 0 and begun[0] >= places - 2 and begun[-1] < 2
    # No place is left out.
    assert set(begun) >= set(range(places - 1))
    envs.close()


def test_who_scores_less_begins_where_it_began(demonstration):
    envs = envs_of(demonstration)
    first = envs.first = 0
    play(envs, Demonstration.load(demonstration), 400, wrong=True)
    assert envs.first == first
    envs.first = 1
    play(envs, Demonstration.load(demonstration), 600, wrong=True)
    assert envs.first == 1
    envs.close()


def test_many_rewards_are_scaled_down(tmp_path):
    """In Skiing each step costs points; with few rewards they are 1 and -1."""
    Demonstration("skiing", False, (0,) * 40, -260).save(tmp_path / "skiing.json")
    envs = envs_of(tmp_path / "skiing.json", game="skiing")
    envs.reset(seed=0)
    _, rewards, *_, infos = envs.step(torch.zeros(6, dtype=torch.int64))
    assert (infos["raw_reward"] < -5).all() and rewards.dtype == torch.float32
    assert torch.allclose(rewards, torch.full((6,), -0.25))  # of 40 steps
    envs.close()
    Demonstration("skiing", False, (0,) * 4, -26).save(tmp_path / "skiing.json")
    assert envs_of(tmp_path / "skiing.json", game="skiing")._scale == 1


def test_points_within_the_tolerance_are_enough(demonstration):
    """Of points that were lost, more may be lost."""
    envs = envs_of(demonstration, tolerance=0.25)
    assert torch.equal(envs._wanted, envs._left * 0.75)
    envs.close()
    lost = torch.tensor([-100, 40])
    assert wanted(lost, 0.0).tolist() == [-100, 40] and wanted(lost, 0.1).tolist() == [-110, 36]
    envs = envs_of(demonstration, tolerance=1.0)
    before = envs.first
    play(envs, Demonstration.load(demonstration), 400, wrong=True)
    assert before > envs.first == envs.first_on_device
    envs.close()


def test_an_episode_ends_after_a_while_and_begins_at_a_place(demonstration):
    envs = envs_of(demonstration, num_envs=1, patience=1.0)
    place = int(envs._parts["place"][0])
    envs.reset(seed=0)
    place, lengths, length = int(envs._parts["place"][0]), [], 0
    wanted = envs._starts.tensors["ram"][place]
    assert torch.equal(envs._env.get_ram()[0], wanted)
    for _ in range(200):
        *_, terminated, truncated, infos = envs.step(torch.zeros(1, dtype=torch.int64))
        length += 1
        if truncated[0]:
            lengths.append((place, length))
            observations, rewards, terminated, truncated, infos = envs.step(torch.ones(1).long())
            place, length = int(envs._parts["place"][0]), 0
            assert torch.equal(envs._env.get_ram()[0], envs._starts.tensors["ram"][place])
            assert (rewards[0], terminated[0], truncated[0], infos["raw_reward"][0]) == (0,) * 4
            assert torch.equal(observations[0], envs._starts.tensors["observations"][place])
    assert len(lengths) > 1
    assert all(length == envs._limits[place] for place, length in lengths)
    envs.close()


def test_some_episodes_begin_at_the_start(demonstration):
    envs = envs_of(demonstration, num_envs=64, from_start=0.25)
    envs.reset(seed=0)
    begun = envs._parts["place"]
    assert 6 <= (begun == 0).sum() <= 28 and ((begun == 0) | (begun >= envs.first)).all()
    envs.close()


def test_some_episodes_begin_at_any_later_place(demonstration):
    envs = envs_of(demonstration, num_envs=64, rehearse=0.5)
    envs.first = 3
    envs.reset(seed=0)
    begun = envs._parts["place"]
    assert begun.min() == 3 and begun.max() > 20 and 16 <= (begun >= 5).sum() <= 44
    envs.close()


def test_only_episodes_that_begin_where_they_begin_now_count(demonstration):
    """Not those from before the last move, nor those from the start or from later places."""
    envs = envs_of(demonstration, num_envs=4, episodes=4)
    envs.first = 5
    parts, everybody = envs._parts, torch.ones(4, dtype=torch.bool)
    parts["points"].fill_(10**6)
    for place, first, counted in ((5, 5, 4), (6, 5, 4), (7, 5, 0), (0, 5, 0), (5, 6, 0)):
        parts["place"].fill_(place)
        parts["first"].fill_(first)
        envs._move(everybody)
        assert envs.first == 5 - counted // 4, (place, first)
        envs.first = 5
    envs.close()


def settings(folder, path, **changes):
    return Args(
        demonstration=path, folder=folder, width=0.1, num_steps=16, minibatch_size=32,
        progress=False, plot=False, logger="none", **SMALL | {"sticky": 0.25} | changes,
    )  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_training_resumed_is_as_if_never_stopped(demonstration, device, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    long = {"total_frames": 6 * 4 * 16 * 8, "anneal_lr": False, "device": device}
    if device == "cuda":
        long |= {"deterministic": True, "bf16": False}
    train.train(Robustify, settings(whole, demonstration, **long))
    half = {**long, "total_frames": 6 * 4 * 16 * 4}
    train.train(Robustify, settings(parts, demonstration, **half))
    train.train(Robustify, settings(parts, demonstration, resume=True, **long))
    assert_same(saved(parts), saved(whole))
    assert without_times(parts) == without_times(whole)


def test_checkpoints_of_other_versions_are_refused(demonstration):
    envs = envs_of(demonstration)
    envs.reset(seed=0)
    state = envs.state_dict()
    del state["parts"]["first"]
    message = "expected a checkpoint with .*place, first, points.* got one with .*place, points"
    with pytest.raises(ValueError, match=message):
        envs.load_state_dict(state)
    envs.close()


def test_a_trained_policy_plays_the_game_from_its_start(demonstration, tmp_path):
    train.train(Robustify, settings(tmp_path, demonstration, total_frames=6 * 4 * 16 * 2))
    (row,) = evaluation.evaluate(evaluation.Args(
        tmp_path, episodes=2, sticky=(0.25,), noops=0, max_frames=400, device="cpu",
        num_threads=1, progress=False, program=("examples.go_explore.robustify",),
    ))  # fmt: skip
    assert row["game"] == GAME and row["episodes"] == 2
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    first = envs_of(demonstration).first
    assert [line["first"] for line in logged if "first" in line] == [first]


@pytest.mark.parametrize("changes, message", [
    ({"game": "pong"}, "expected a demonstration with game pong, got .* with ms_pacman"),
    ({"full_action_space": True}, "expected a demonstration with full_action_space True, got"),
    ({"every": 0}, "expected every to be at least 1, got 0"),
    ({"enough": 2.0}, "expected enough to be from 0 to 1, got 2.0"),
    ({"tolerance": -0.1}, "expected tolerance to be from 0 to 1, got -0.1"),
    ({"eval_episodes": 3}, "expected eval_episodes to be 0 with a demonstration, got 3"),
])  # fmt: skip
def test_settings_that_do_not_fit_are_refused(demonstration, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        train.train(Robustify, settings(tmp_path, demonstration, total_frames=1000, **changes))
    assert not list(tmp_path.glob("checkpoints/*"))


def test_a_demonstration_without_actions_is_refused(demonstration, tmp_path):
    empty = dataclasses.replace(Demonstration.load(demonstration), actions=())
    empty.save(tmp_path / "empty.json")
    for name, message in (("empty", " with actions, got"), ("none", ", got .*none.json")):
        with pytest.raises(ValueError, match=f"expected a demonstration{message}"):
            envs_of(tmp_path / f"{name}.json")
