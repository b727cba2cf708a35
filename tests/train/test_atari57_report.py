"""The report of a suite of Atari-57: tables, curves, times."""

from __future__ import annotations

import json
import re

import imageio.v2 as imageio
import numpy as np
import pytest
from scipy import stats

import cule
from examples.atari57 import pictures, report
from examples.atari57.references import references


def test_report_refuses_a_folder_without_agents(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path)])
    assert report.main() == 2
    message = "report: expected a suite's folder with finished agents"
    assert capsys.readouterr().err.startswith(message)


@pytest.fixture
def made_up(tmp_path):
    """A suite of all games with two seeds: in the first each game's score rises from random play to
    1 + a tenth of its place in the list, human-normalised; in the second it stays at random."""
    rows = []
    for place, game in enumerate(cule.ATARI_57):
        random, human = (references()[name][game] for name in ("random", "human"))
        for seed in (0, 1):
            normalised = (1 + place / 10) * (1 - seed)
            score = random + normalised * (human - random)
            folder = tmp_path / f"{game}-{seed}" / "training"
            folder.mkdir(parents=True)
            line = {"kind": "training", "seconds": 120.0, "frames": 4_000_000, "score": score}
            early = {**line, "seconds": 60.0, "frames": 2_000_000, "score": None}
            text = f"{json.dumps(early)}\n{json.dumps(line)}\n"
            (folder / "log.jsonl").write_text(text)
            rows.append({
                "job": f"{game}-{seed}", "game": game, "seed": seed, "score": score,
                "score_normalised": normalised, "score_deviation": 1.0, "algorithm": "PQN",
                "protocol": "machado", "frames": 4_000_000, "episodes": 100, "max_frames": 108_000,
                "seconds": 120.0, "startup_seconds": 3.0, "evaluation_seconds": 60.0,
                "fps": 33_333.3, "device_name": "a GPU", "commit": "abc",
            })  # fmt: skip
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.slow
def test_report_of_all_games(made_up):
    report.write_report(made_up)
    text = (made_up / "report.md").read_text()
    # The mean over seeds is half of the first's: (1 + 28 / 10) / 2 in the middle game.
    first = 1 + np.arange(57) / 10
    assert "| **PQN**, this suite | 57 | 2 | 1.90 (" in text
    iqm = stats.trim_mean(np.concatenate([first, np.zeros(57)]), 0.25)
    assert f" | {iqm:.2f} (" in text
    assert "| IMPALA, deep | 57 | . | 1.92 | 15.92 | 2.72 |" in text
    assert "| Rainbow | 54 | . | 2.27 | 13.89 | 2.71 |" in text
    assert "On a GPU: 3.80 GPU-hours of training" in text
    assert "| alien | 4.0 | 0.067 | 33,333 | 2.0 |" in text
    assert "Intervals are 95%" in text and "There are none." in text
    # A table of scores and one of times.
    games = re.findall(r"^\| (\w+) \| [-\d]", text, re.MULTILINE)[1:]
    assert games == 2 * list(cule.ATARI_57)
    for name in ("curves", "games_frames", "games_seconds", "bars"):
        assert imageio.imread(made_up / f"{name}.png").std() > 5


def test_gpu_hours_count_each_second_of_a_gpu_once():
    """Two trainings that share a GPU for a time have half of it each."""
    share = {"seconds": 100.0, "trained": [["cuda:0", 1000.0, 1100.0]]}
    later = {"seconds": 100.0, "trained": [["cuda:0", 1060.0, 1160.0]]}
    # It was stopped once, and went on elsewhere.
    resumed = {"seconds": 90.0, "trained": [["cuda:1", 1070.0, 1100.0], ["cuda:0", 1150.0, 1210.0]]}
    other = {"seconds": 100.0, "trained": [["cuda:1", 1060.0, 1160.0]]}
    # 20 s are from a process that was killed.
    killed = {"seconds": 30.0, "trained": [["cuda:2", 1200.0, 1210.0]]}
    unknown = {"seconds": 50.0}
    found = report.gpu_seconds([share, later, resumed, other, killed, unknown])
    assert found == pytest.approx([80.0, 75.0, 15.0 + 55.0, 85.0, 30.0, 50.0])
    alone = report.gpu_seconds([share, share, share])
    assert alone == pytest.approx([100 / 3] * 3)


@pytest.mark.parametrize("key, end", [("frames", 4.0), ("seconds", 2.0)])
def test_curves_rise_from_random_play_to_the_first_score(made_up, key, end):
    axis, scores = pictures.curves_of_all(report.Suite(made_up), key)
    assert (axis[0], axis[-1]) == (0, end) and scores.shape == (200, 2, 57)
    rising = np.outer(axis / end, 1 + np.arange(57) / 10)
    np.testing.assert_allclose(scores[:, 0], rising, atol=1e-9)
    np.testing.assert_allclose(scores[:, 1], 0, atol=1e-9)


def test_report_leaves_out_seeds_that_a_game_lacks_and_names_failed_agents(made_up):
    path = made_up / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[5] = {"job": rows[5]["job"], "command": "python", "error": "no memory"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    suite = report.Suite(made_up)
    assert "failed: assault-1. There are no confidence intervals" in report.how(suite)
    assert "| **PQN**, this suite | 57 | 1 | 3.80 |" in report.table_of_aggregates(suite)
