"""The rows of measure.py."""

from __future__ import annotations

import json

import pytest
import torch

from examples.a2c_vtrace import measure
from examples.a2c_vtrace.arguments import Args


@pytest.mark.parametrize("emulator", ["cule", "ale-py"])
def test_measure_gives_three_rows_for_each_number_of_envs(tmp_path, emulator):
    path = tmp_path / "rows.jsonl"
    train = Args(
        device="cpu",
        emulator=emulator,
        num_batches=1,
        n_steps=2,
        steps_per_update=2,
        width=0.1,
        num_threads=1,
    )
    rows = measure.run(
        measure.Args(
            game="assault",
            num_envs=(2, 4),
            seconds=0.02,
            warmup_steps=3,
            train=train,
            progress=False,
            results=path,
        )
    )
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows
    modes = ("emulation-only", "with-policy", "training")
    assert [(row["num_envs"], row["mode"]) for row in rows] == [
        (n, mode) for n in (2, 4) for mode in modes
    ]
    assert {row["system"] for row in rows} == {emulator}
    for row in rows[2::3]:
        # What is idle is defined as the rest.
        assert sum(row["part_milliseconds"].values()) == pytest.approx(
            row["iteration_milliseconds"], abs=1e-2
        )
        assert row["fps"] == pytest.approx(
            row["num_envs"] * 2 * 4 * 1e3 / row["iteration_milliseconds"], rel=1e-2
        )
        assert all(
            value > 0
            for name, value in row["part_milliseconds"].items()
            if name not in ("idle", "learning")
        )


def test_meter_stores_what_training_stores():
    """After its parts were measured, the trainer still trains.

    Its position has moved by the stored steps.
    """
    train = Args(
        game="pong",
        num_envs=2,
        num_batches=1,
        n_steps=2,
        steps_per_update=2,
        width=0.1,
        num_threads=1,
        warmup_steps=0,
    )
    meter = measure.Meter(
        train.on(torch.device("cpu")), measure.World(0, 1, torch.device("cpu")), 2
    )
    position = int(meter.trainer.player.rollout.position)
    meter.parts[2][1]()
    assert int(meter.trainer.player.rollout.position) == position + 1
    for _ in range(4):
        meter.trainer.iterate()
    assert meter.trainer.updates == 4
    meter.trainer.close()
