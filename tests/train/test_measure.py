"""The rows of measure.py."""

from __future__ import annotations

import json

import pytest
import torch

from examples.a2c_vtrace import measure
from examples.a2c_vtrace.train import Args


@pytest.mark.parametrize("emulator", ["cule", "ale-py"])
def test_measure_gives_three_rows_for_each_number_of_envs(tmp_path, emulator):
    path = tmp_path / "rows.jsonl"
    train = Args(
        device="cpu",
        emulator=emulator,
        num_batches=1,
        num_steps=2,
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
        assert all(value > 0 for name, value in row["part_milliseconds"].items() if name != "idle")


def test_meter_leaves_a_trainer_that_trains():
    """After measuring the parts."""
    train = Args(
        game="pong", num_envs=2, num_batches=1, num_steps=2, steps_per_update=2, width=0.1,
        num_threads=1, warmup_steps=0,
    )  # fmt: skip
    cpu = torch.device("cpu")
    meter = measure.Meter(train.on(cpu), measure.World(0, 1, cpu), 2)
    parts = meter.milliseconds(1.0, 0.001)
    assert set(parts) == {"act", "emulate", "gradient", "update", "idle"}
    for _ in range(4):
        meter.trainer.iterate()
    assert meter.trainer.updates == 4
    meter.trainer.close()
