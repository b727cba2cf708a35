"""Go-Explore: cells, the ways to them, and demonstrations that both emulators replay."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

import cule
from examples.go_explore import explore
from examples.go_explore.archive import Archive, Paths
from examples.go_explore.demonstration import KIND, Demonstration

SMALL = {"num_envs": 8, "max_cells": 200, "rounds": 12, "num_threads": 1, "progress": False,
         "device": "cpu"}  # fmt: skip


def state_of(*numbers):
    """A state of some envs, of which only one part has numbers."""
    return cule.State(5, [("pong", 0, 0)] * len(numbers), {"part": torch.tensor([*numbers])})


def put(archive, cells, scores, steps, paths, numbers):
    archive.put(
        np.array(cells), np.array(scores, float), np.array(steps), paths, state_of(*numbers)
    )


def test_paths_lead_from_the_start():
    paths = Paths()
    first = paths.add(0, np.array([1, 2]))
    second, third = (paths.add(first, np.array([action])) for action in (3, 4))
    assert paths.actions(0).tolist() == []
    assert paths.actions(second).tolist() == [1, 2, 3]
    assert paths.actions(third).tolist() == [1, 2, 4]


def test_a_cell_has_the_most_points_and_then_the_fewest_steps():
    archive = Archive(state_of(0), 10)
    put(archive, [5, 6], [10, 0], [30, 40], [1, 2], [50, 60])

    def seen(cells, scores, steps):
        numbers = (np.array(cells), np.array(scores, float), np.array(steps))
        return archive.see(*numbers).tolist()

    assert seen([5, 5, 6], [10, 9, 0], [30, 1, 40]) == []  # as before, or fewer points
    assert archive.visits.tolist() == [3, 2]
    assert seen([5, 6, 6, 7], [11, 0, 0, 0], [99, 39, 38, 7]) == [0, 2, 3]
    put(archive, [5, 6, 7], [11, 0, 0], [99, 38, 7], [3, 4, 5], [51, 61, 71])
    assert archive.scores.tolist() == [11, 0, 0] and archive.steps.tolist() == [99, 38, 7]
    assert archive.paths.tolist() == [3, 4, 5] and archive.best() == 0
    assert archive.states(np.array([2, 0, 2])).tensors["part"].tolist() == [71, 51, 71]
    assert archive.states(np.array([1, 1])).games == [("pong", 0, 0)] * 2


def test_a_full_archive_takes_better_ways_and_no_more_cells():
    archive = Archive(state_of(0), 2)
    put(archive, [1], [0], [1], [0], [1])
    found = archive.see(np.array([2, 3, 1]), np.array([0.0, 5.0, 9.0]), np.array([1, 1, 1]))
    assert len(found) == 2 and 2 in found
    put(archive, [3], [5], [1], [0], [3])
    assert archive.see(np.array([2]), np.zeros(1), np.ones(1, int)).tolist() == []


def test_seldom_visited_cells_are_chosen_more_often():
    archive = Archive(state_of(0), 2)
    put(archive, [1, 2], [0, 0], [1, 1], [0, 0], [1, 2])
    for _ in range(99):
        archive.see(np.array([1]), np.zeros(1), np.ones(1, int))
    chosen = archive.choose(2000, np.random.default_rng(0))
    assert 0.1 < (chosen == 0).mean() < 0.2  # 1 to sqrt(101 / 2), which is 0.12


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("game", ["ms_pacman", "pong", "breakout"])
def test_both_emulators_replay_what_scores_most(game, device, tmp_path):
    """Explored in parts, from states that were put back, and played from the start."""
    args = explore.Args(game, folder=tmp_path, seed=3, **SMALL | {"rounds": 30, "device": device})
    row = explore.explore(args)  # which raises if one of them scores otherwise
    found = Demonstration.load(tmp_path / explore.BEST)
    assert found.score == row["score"] and len(found.actions) == row["demonstration_steps"]
    if game != "pong":
        assert row["score"] > 0 and row["score_normalised"] is not None and row["cells"] > 1
    assert json.loads((tmp_path / explore.RESULT).read_text())["cells"] == row["cells"]


def test_exploring_returns_to_where_its_actions_lead():
    """The state of each cell is that to which the actions of its path lead from the start."""
    explorer = explore.Explorer(explore.Args("ms_pacman", **SMALL))
    for _ in range(8):
        explorer.round()
    archive, env = explorer.archive, explorer.env
    places = np.argsort(-archive.steps)[:4]
    env.restore_state(archive.states(places), np.arange(4))
    wanted = env.get_ram()[:4].clone()
    env.reset(seed=0)
    for number, place in enumerate(places):
        actions = explorer._paths.actions(int(archive.paths[place]))
        assert len(actions) == archive.steps[place] > 20
        env.reset(seed=0)
        for action in actions:
            env.step(torch.full((env.num_envs,), int(action)))
        assert torch.equal(env.get_ram()[0], wanted[number])
    env.close()


def test_the_same_seed_explores_the_same(tmp_path):
    rows = [
        explore.explore(explore.Args("seaquest", folder=tmp_path / str(n), seed=seed, **SMALL))
        for n, seed in enumerate((1, 1, 2))
    ]
    names = ("cells", "score", "demonstration_steps")
    first, again, other = ([row[name] for name in names] for row in rows)
    assert first == again != other


def test_ctrl_c_keeps_what_was_found(tmp_path, monkeypatch, capsys):
    rounds, play = [], explore.Explorer.round

    def stopped(self):
        if len(rounds) == 20:
            raise KeyboardInterrupt
        rounds.append(play(self))

    monkeypatch.setattr(explore.Explorer, "round", stopped)
    args = explore.Args("breakout", folder=tmp_path, **SMALL | {"rounds": 1000})
    row = explore.explore(args)
    assert row["frames"] == 20 * args.steps * 8 * 4 and row["score"] > 0
    assert Demonstration.load(tmp_path / explore.BEST).score == row["score"]
    assert "what was found is kept" in capsys.readouterr().err


def test_a_better_demonstration_stays_in_the_folder(tmp_path):
    args = explore.Args("breakout", folder=tmp_path, **SMALL | {"rounds": 20})
    explore.explore(args)
    best = Demonstration.load(tmp_path / explore.BEST)
    explore.explore(dataclasses.replace(args, rounds=1))  # in which nobody scores
    assert Demonstration.load(tmp_path / explore.BEST) == best
    with pytest.raises(ValueError, match="expected a folder without a demonstration of another"):
        explore.explore(dataclasses.replace(args, game="pong"))
    (tmp_path / explore.BEST).write_text("{")
    with pytest.raises(ValueError, match="expected a demonstration, got"):
        explore.explore(args)


def test_where_points_are_only_lost_a_game_that_has_ended_is_demonstrated(tmp_path, monkeypatch):
    """In Skiing a game that has just begun has the most points; here games end after 400 frames."""
    folder = tmp_path / "skiing"
    args = explore.Args("skiing", folder=folder, **SMALL)
    empty = explore.explore(dataclasses.replace(args, rounds=1))  # in which none has ended
    assert (empty["score"], empty["demonstration_steps"]) == (0, 0)
    monkeypatch.setattr(explore, "MOST_FRAMES", 400)
    row = explore.explore(args)
    assert row["demonstration_steps"] == 100 and -700 < row["score"] < -600
    assert Demonstration.load(folder / explore.BEST).score == row["score"]
    # In Montezuma's Revenge such a game has 0 points, as one without actions.
    row = explore.explore(explore.Args("montezuma_revenge", folder=tmp_path, **SMALL))
    assert (row["score"], row["demonstration_steps"]) == (0, 0)


def test_cells_of_named_bytes(tmp_path):
    args = explore.Args("montezuma_revenge", folder=tmp_path, ram=("player_x", "player_y"), **SMALL)
    rows = [explore.explore(dataclasses.replace(args, ram_step=step)) for step in (2, 256)]
    assert rows[0]["cells"] > 10 and rows[1]["cells"] == 1


@pytest.mark.parametrize("changes, message", [
    ({"game": "pnog"}, "closest: 'pong'"),
    ({"ram": ("player_z",)}, r"expected a name of a byte of RAM of pong \(.*\), got 'player_z'"),
    ({"rounds": 0}, "expected rounds to be at least 1, got 0"),
    ({"repeat": 1.5}, "expected repeat to be from 0 to 1, got 1.5"),
    ({"num_envs": -1}, "expected num_envs to be at least 1, got -1"),
    ({"seconds": -1.0}, "expected seconds to be at least 0, got -1"),
])  # fmt: skip
def test_settings_that_do_not_fit_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        explore.explore(explore.Args(**{"game": "pong", "folder": tmp_path, **SMALL} | changes))
    assert not list(tmp_path.iterdir())


RIGHT = {"kind": KIND, "game": "pong", "full_action_space": False, "actions": [0, 1], "score": 0}


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", "no JSON", json.dumps(RIGHT | {"actions": [6]}),
        json.dumps(RIGHT | {"actions": [-1]}), json.dumps(RIGHT | {"actions": ["1"]}),
        json.dumps(RIGHT | {"game": 3}), json.dumps(RIGHT | {"kind": "another"}),
        json.dumps(RIGHT | {"more": 1}), json.dumps(RIGHT | {"actions": [0] * 30_000}),
    ],
)  # fmt: skip
def test_damaged_demonstrations_are_refused(tmp_path, content):
    path = tmp_path / "best.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="expected"):
        Demonstration.load(path)
    path.write_text(json.dumps(RIGHT))
    assert Demonstration.load(path).actions == (0, 1)
    with pytest.raises(ValueError, match="expected a demonstration, got"):
        Demonstration.load(tmp_path / "none.json")


def test_program_says_what_it_has_found(tmp_path, capsys):
    words = ["breakout", "--rounds", "5", "--num-envs", "4", "--device", "cpu", "--num-threads",
             "1", "--no-progress", "--folder", str(tmp_path)]  # fmt: skip
    assert explore.main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith("breakout: ") and "frames in" in said and "on ale-py, too" in said
