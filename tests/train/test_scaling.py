"""What is foretold of more GPUs: rows whose truth is planted, and rows that do not do."""

from __future__ import annotations

import json
import re

import pytest

from cule.train import scaling
from cule.train.scaling import Args, Link, fit, gradient_bytes, usable, worth

FIXED, PER_ENV, UPDATES = 2e-3, 1e-6, 0.5


def a_row(gpus: int, each: int, averaging: float = 0.0, **changes):
    """A row of a training whose steps take what the constants above say."""
    seconds = FIXED + PER_ENV * each + averaging
    envs, steps = gpus * each, 1000
    return {
        "algorithm": "A2C", "game": "pong", "model": "nature", "width": 1.0, "layout": "together",
        "num_gpus": gpus, "num_envs": envs, "frameskip": 4, "fps": 4 * envs / seconds,
        "frames": 4 * envs * steps, "updates": steps * UPDATES, **changes,
    }  # fmt: skip


def test_planted_costs_are_found():
    rows = [a_row(1, envs) for envs in (600, 1200, 4800)]
    model = fit(usable(rows), Args(()))
    assert (model.fixed, model.per_env) == pytest.approx((FIXED, PER_ENV))
    assert model.updates == pytest.approx((UPDATES, 0), abs=1e-9)
    for row in rows:
        assert model.fps(row["num_envs"], 1) == pytest.approx(row["fps"])
    # The Nature CNN's layers by hand: 4x8x8x32, 32x4x4x64, 64x3x3x64, 3136x512, 512x(18 + 1).
    weights = [8192 + 32, 32768 + 64, 36864 + 64, 1605632 + 512, 512 * 19 + 19]
    assert model.size == 4 * sum(weights) == gradient_bytes(rows[0])


def test_averages_take_the_time_of_a_ring_or_of_trees():
    link = Link(latency=1e-5, bandwidth=1e9)
    assert link.average(1, 1e6) == 0
    assert link.average(2, 1e6) == pytest.approx(2e-5 + 1e-3)
    # Few bytes over many: trees, whose latency grows by the logarithm.
    assert link.average(1024, 4) == pytest.approx(20e-5, rel=1e-3)
    # Many bytes over few: a ring, in which each byte passes fewer links.
    assert link.average(4, 1e8) == pytest.approx(6e-5 + 1.5e8 / 1e9)


def test_machines_are_averaged_over_their_own_link():
    args = Args((), gpus_per_machine=8, latency=0, bandwidth=100, machine_latency=1e6)
    model = fit([a_row(1, envs) for envs in (600, 1200)], args)
    once = model.inside.average(8, model.size)
    assert model.averaging(100, 8) == pytest.approx(UPDATES * once)
    assert model.averaging(100, 9) == pytest.approx(
        UPDATES * (once + 2 + 2 * model.size / 2 / 25e9)
    )


def test_gpus_are_worth_it_until_steps_are_mostly_fixed():
    """With a step of 2 ms and 1 us an env: 8,000 envs on one GPU take 10 ms, on four 4 ms."""
    model = fit([a_row(1, envs) for envs in (600, 1200)], Args((), latency=0, machine_latency=0))
    assert [worth(model, envs, 1.25) for envs in (8_000, 500, 1)] == [8, 1, 1]
    assert worth(model, 8_000, 1.6) == 2
    assert worth(model, 10**9, 1.25) == scaling.MOST_GPUS


def test_command_prints_the_table_and_how_far_it_is_off(tmp_path, capsys):
    path = tmp_path / "result.jsonl"
    rows = [a_row(1, 1200), a_row(1, 1200, 1e-3), a_row(1, 1200), a_row(1, 2400)]
    rows += [a_row(4, 600, 26e-4), {"other": 1}, a_row(1, 9, interrupted=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert scaling.main([str(path)]) == 0
    printed = capsys.readouterr().out
    assert "A step takes 2.000 ms, and 1.000 us for each env of a GPU." in printed
    # The rows of four GPUs take twice as long as the model knows of.
    measured = re.search(r"4 GPUs, 2,400 envs: .* \(\+(\d+)%\)", printed)
    assert measured and 90 < int(measured[1]) <= 100
    lines = [line.split() for line in printed.splitlines() if re.match(r"[\d,]+ +[\d,.]+ ", line)]
    assert [line[0] for line in lines[:4]] == ["1", "2", "4", "8"] and lines[-1][0] == "1,024"
    assert lines[0][2] == f"{rows[3]['fps']:,.0f}" == lines[0][5]
    assert printed.splitlines()[-1].startswith("With 2,400 envs in all 2 GPUs are worth it")


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([], (), "expected rows of trainings with the layout together, got none"),
        ([a_row(1, 600, layout="decoupled:1+1")], (), "with the layout together, got none"),
        ([a_row(1, 600), a_row(1, 600), a_row(2, 300)], (), "two numbers of envs or more, got 600"),
        ([a_row(2, 600)], (), "two numbers of envs or more, got none"),
        ([a_row(1, 600), a_row(1, 300, game="qbert")], (), "with one game, got 'pong', 'qbert'"),
        ([a_row(1, 600, model=None), a_row(1, 300, model=None)], (), "expected parameters, where"),
        ([a_row(1, 600), a_row(1, 300)], ("--bandwidth", "0"), "expected bandwidth to be above 0"),
        ([a_row(1, 600), a_row(1, 300)], ("--num-envs", "0"), "num_envs to be at least 1, got 0"),
    ],
)
def test_what_foretells_nothing_is_a_sentence(rows, options, told, tmp_path, capsys):
    path = tmp_path / "result.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert scaling.main([str(path), *options]) != 0
    assert told in capsys.readouterr().err
