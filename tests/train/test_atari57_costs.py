"""What a suite of Atari-57 has cost, beside the literature."""

from __future__ import annotations

import imageio.v3 as imageio
import pytest

import cule
from cule.programs.results import append_row
from examples.atari57 import costs


def rows_of(seed=0, trainings_on_gpu=1, **changes):
    """An evaluation of each game; the scores are 0, 0.1, 0.2, ..."""
    return [
        {"mode": "evaluation", "game": game, "seed": seed, "commit": "abc", "algorithm": "PQN",
         "protocol": "machado", "sticky": 0.25, "frames": 8_000_000, "seconds": 60.0,
         "device_name": "a GPU", "score_normalised": place / 10,
         "trainings_on_gpu": trainings_on_gpu, **changes}
        for place, game in enumerate(cule.ATARI_57)
    ]  # fmt: skip


def test_hours_are_those_of_a_gpu_and_of_one_seed():
    (one,) = costs.costs_of(rows_of())
    assert (one.games, one.frames, one.sticky, one.hardware) == (57, 8.0, True, "a GPU")
    assert one.hours == pytest.approx(57 / 60) and one.median == pytest.approx(2.8)
    assert one.iqm == pytest.approx(2.8)
    (two,) = costs.costs_of([*rows_of(), *rows_of(seed=1, trainings_on_gpu=2)])
    assert two.hours == pytest.approx(57 / 60 * 0.75)
    # A suite by another protocol is another one; of one that lacks games nothing is said.
    other = rows_of(protocol="noops", sticky=0.0, seconds=120.0)
    assert [one.sticky for one in costs.costs_of([*rows_of(), *other])] == [True, False]
    assert len(costs.costs_of([*rows_of(), *other[1:]])) == 1
    with pytest.raises(ValueError, match="expected a suite of all 57 games among the rows, got no"):
        costs.costs_of([*other[1:], {"mode": "training", "game": "pong"}])


def test_frontier_has_what_no_cheaper_one_reaches():
    points = [(3.0, 2.0), (1.0, 1.0), (2.0, 0.5), (3.0, 4.0), (9.0, 4.0)]
    assert costs.frontier(points) == [(1.0, 1.0), (3.0, 4.0)]


def test_table_and_picture(tmp_path, monkeypatch, capsys):
    for row in rows_of():
        append_row(tmp_path / "rows.jsonl", row)
    monkeypatch.setattr(
        "sys.argv", ["costs", str(tmp_path / "rows.jsonl"), "--output", str(tmp_path / "costs.png")]
    )
    assert costs.main() == 0
    head, first, *others = capsys.readouterr().out.splitlines()
    said = [" ".join(line.split()) for line in (head, first)]
    assert said[0] == "games M frames GPU-hours median IQM sticky hardware"
    assert said[1] == "PQN, this suite, machado 57 8 0.95 2.80 2.80 yes a GPU"
    assert [line.split()[0] for line in others] == ["PQN", "Rainbow", "BTR"]
    assert imageio.imread(tmp_path / "costs.png").std() > 5
    monkeypatch.setattr("sys.argv", ["costs", str(tmp_path / "nothing.jsonl")])
    assert costs.main() == 2
    assert "expected a file of rows, got" in capsys.readouterr().err
