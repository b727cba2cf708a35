"""The search for the settings of Atari-57: candidates, their trainings, and the table."""

from __future__ import annotations

import pytest
import torch
import tyro

import cule
from examples.atari57 import agent, search
from examples.atari57.references import references
from examples.atari57.settings import (
    CANDIDATES,
    SEARCH_GAMES,
    settings_of,
    training_settings,
)


def result(job, score, fps=1e6):
    game = job.split("/")[1].rpartition("-")[0]
    return {"job": job, "game": game, "score": score, "fps": fps, "frames": 10 * fps}


def test_search_ranks_candidates_by_their_median():
    """One that lacks a game comes last, and one without any result is left out."""
    human, random = references()["human"], references()["random"]
    rows = [
        result("a/pong-0", human["pong"]), result("a/qbert-0", random["qbert"]),
        result("b/pong-0", human["pong"]), result("b/qbert-0", human["qbert"], fps=3e6),
        result("b/qbert-1", random["qbert"]),
        result("c/pong-0", 2 * human["pong"]), {"job": "c/qbert-0", "error": "no memory"},
    ]  # fmt: skip
    lines = [line.split() for line in search.table(rows, ["a", "b", "c", "d"]).splitlines()]
    assert lines[0] == ["candidate", "median", "mean", "IQM", "M", "FPS", "M", "frames",
                        "pong", "qbert"]  # fmt: skip
    assert [line[0] for line in lines[1:]] == ["b", "a", "c"]
    assert lines[1][1:] == ["75%", "75%", "75%", "1.67", "16.7", "100%", "50%"]
    assert lines[3][-1] == "."


def test_search_trains_each_candidate_as_the_suite_would():
    jobs = search.jobs_of(search.Args(games=("pong",), seconds=5, episodes=3))
    assert [job.name for job in jobs] == [f"{name}/pong-0" for name in CANDIDATES]
    [short] = search.jobs_of(search.Args(("ppo-256",), ("pong",), total_frames=1000))
    by_frames = tyro.cli(agent.Args, args=short.command[2:])
    assert (by_frames.total_frames, by_frames.schedule_by) == (1000, "frames")
    assert set(SEARCH_GAMES) <= set(cule.ATARI_57)
    for job, name in zip(jobs, CANDIDATES, strict=True):
        job.check()
        assert job.command[:2] == ("-m", "examples.atari57.agent")
        args = tyro.cli(agent.Args, args=job.command[2:])
        assert (args.candidate, args.max_seconds, args.episodes) == (name, 5, 3)
        assert (args.schedule_by, args.video) == ("seconds", False)


@pytest.mark.parametrize("name", CANDIDATES)
def test_candidates_have_settings_that_their_algorithm_knows(name):
    algorithm, added = settings_of("pqn", "cpu", name)
    assert algorithm == CANDIDATES[name][0] and CANDIDATES[name][1].items() <= added.items()
    made = training_settings(algorithm, "noops", **added)
    made.on(torch.device("cuda")).check(1)
    assert made.life_loss_ends and made.checkpoint_every == 0


def test_search_of_an_unknown_candidate_is_a_sentence():
    with pytest.raises(ValueError, match=r"expected a candidate of vtrace-8192.*, got best"):
        search.jobs_of(search.Args(candidates=("best",)))
    with pytest.raises(ValueError, match=r"expected a candidate of vtrace-8192.*, got best"):
        settings_of("pqn", "cpu", "best")
    with pytest.raises(ValueError, match="expected seconds to be greater than 0, got 0"):
        search.jobs_of(search.Args(seconds=0))


@pytest.mark.slow
def test_search_from_trainings_to_the_table(tmp_path, capsys):
    args = search.Args(
        candidates=("pqn-256", "ppo-256"), games=("qbert",), seconds=2, episodes=2, max_frames=400,
        device="cpu", num_threads=1, per_gpu=2, folder=tmp_path,
    )  # fmt: skip
    assert search.compare(args) == 0
    told = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in told[1:]} == {"pqn-256", "ppo-256"}
    assert told[0].split()[-1] == "qbert"
    # With all frames they would be many times as large.
    kept = list(tmp_path.glob("*/*/training/checkpoints/*.pt"))
    assert len(kept) == 2 and all(path.stat().st_size < 2**23 for path in kept)
