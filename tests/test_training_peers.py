"""benchmarks.peers: systems are measured side by side, and what ends one of them is said."""

from __future__ import annotations

import json

import pytest

from benchmarks.peers.__main__ import main
from benchmarks.peers.process import Ended, System, in_turns
from benchmarks.peers.setting import Setting

SMALL = ["--device", "cpu", "--num-envs", "4", "--num-steps", "4", "--width", "0.1",
         "--minibatches", "2", "--rounds", "2", "--warm-up", "1"]  # fmt: skip


pytestmark = pytest.mark.usefixtures("quick_spawn")


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_figure9_has_a_row_for_each_system(tmp_path, capsys):
    systems = ["cule.train", "stable-baselines3", "TorchRL"]
    results, plot = tmp_path / "rows.jsonl", tmp_path / "figure.png"
    words = ["figure9", *SMALL, "--systems", *systems, "--axes", "depth", "--values", "2",
             "--results", str(results), "--plot", str(plot)]  # fmt: skip
    assert main(words) == 0
    found = rows(results)
    assert [(row["system"], row["value"], row["depth"]) for row in found] == [
        (system, 2, 2) for system in systems
    ]
    for row in found:
        assert len(row["all_seconds"]) == 2 and all(s > 0 for s in row["all_seconds"])
        assert row["peak_bytes"] > 1e8 and row["minibatch"] == 8
        assert (row["version"] is None) is (row["system"] == "cule.train")
    assert plot.stat().st_size > 1000
    assert capsys.readouterr().out.count(" ms\n") == 3


@pytest.mark.slow
def test_figure10_goes_on_until_a_picture_is_too_large(tmp_path):
    results = tmp_path / "rows.jsonl"
    # A convolution of three steps needs more than that.
    words = ["figure10", *SMALL, "--systems", "cule.train", "--sizes", "84x64", "20x20", "42x42",
             "--results", str(results)]  # fmt: skip
    assert main(words) == 0
    first, second = rows(results)
    assert first["size"] == [84, 64] and first["seconds"] > 0
    assert second["size"] == [20, 20] and "seconds" not in second and second["problem"]


def test_a_system_that_cannot_go_on_says_why_and_others_go_on():
    setting = Setting(device="cpu", num_envs=4, num_steps=4, minibatch=8, width=0.1)
    with System("CleanRL", setting, 60) as other, System("cule.train", setting, 60) as cules:
        found = in_turns([other, cules], 1, 1)
    assert "expected --cleanrl" in found["CleanRL"]
    assert len(found["cule.train"]) == 1


def test_an_iteration_that_takes_too_long_ends_the_system():
    setting = Setting(device="cpu", num_envs=4, num_steps=4, minibatch=8, width=0.1)
    with System("cule.train", setting, 0.01) as system, pytest.raises(Ended, match="longer than"):
        system.iterate()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--values", "1"], "expected one of --axes with --values, got 4"),
        (["--systems", "CleanRL"], "which are there, got CleanRL"),
        (["--rounds", "0"], "expected at least 1 as --rounds"),
    ],
)
def test_what_is_wrong_is_refused_at_once(words, message, capsys):
    with pytest.raises(SystemExit):
        main(["figure9", *words])
    assert message in capsys.readouterr().err
