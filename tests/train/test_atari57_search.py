"""The search for the settings of Atari-57: candidates, their trainings, and the table."""

from __future__ import annotations

import pytest
import torch
import tyro

import cule
from examples.atari57 import search
from examples.atari57.references import references
from examples.atari57.settings import ALGORITHMS, CANDIDATES, SEARCH_GAMES


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
    assert short.command[short.command.index("--total-frames") + 1] == "1000"
    assert set(SEARCH_GAMES) <= set(cule.ATARI_57)
    for job, (algorithm, settings) in zip(jobs, CANDIDATES.values(), strict=True):
        job.check()
        assert job.command[:2] == ("-m", ALGORITHMS[algorithm][1].__module__)
        args = tyro.cli(ALGORITHMS[algorithm][1], args=job.command[2:])
        args.on(torch.device("cuda")).check(1)
        wanted = {"life_loss_ends": True, "max_seconds": 5, "eval_episodes": 3,
                  "total_frames": 200_000_000, **settings}  # fmt: skip
        assert {name: getattr(args, name) for name in wanted} == wanted


def test_search_of_an_unknown_candidate_is_a_sentence():
    with pytest.raises(ValueError, match=r"expected candidates of vtrace-4096, .*, got best"):
        search.jobs_of(search.Args(candidates=("best",)))
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
    assert not list(tmp_path.glob("*/*/checkpoints/*"))
