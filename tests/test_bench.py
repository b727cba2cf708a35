"""The benchmark's command line: rows with the agreed keys, and sentences for mistakes. No timing is asserted."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cule import bench
from cule.rom import find_game

KEYS = (
    "commit", "date", "system", "mode", "device_name", "driver", "cuda", "torch", "game", "rom_md5", "num_envs",
    "frameskip", "fps", "steps_per_second", "command",
)  # fmt: skip
SHORT = ["--device", "cpu", "--seconds", "0.02", "--rounds", "2", "--warmup-steps", "2", "--quiet"]


def run(*arguments: str) -> int:
    try:
        return bench.main(arguments)
    except SystemExit as left:
        return left.code


def read_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_bench_appends_a_row_for_each_system_and_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    results = tmp_path / "new" / "rows.jsonl"
    arguments = ["pong", "ALE/MsPacman-v5", "--num-envs", "1", "2", *SHORT, "--results", str(results)]
    assert run(*arguments) == 0
    rows = read_rows(results)
    assert [(row["game"], row["num_envs"], row["system"]) for row in rows] == [
        (game, num_envs, system)
        for game in ("pong", "ms_pacman")
        for num_envs in (1, 2)
        for system in ("cule", "ale-py")
    ]
    for row in rows:
        assert tuple(row) == KEYS
        assert row["mode"] == "end-to-end"
        assert row["rom_md5"] == find_game(row["game"]).md5
        assert (row["driver"], row["cuda"]) == (None, None)
        assert row["fps"] > 0
        assert row["steps_per_second"] == pytest.approx(row["fps"] / 4, rel=1e-2)
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == [
        "game", "pong", "pong", "ms_pacman", "ms_pacman", "median", "median", "Appended",
    ]  # fmt: skip
    assert printed.err == ""


def test_bench_command_of_a_row_measures_its_case_again(tmp_path: Path) -> None:
    results = tmp_path / "rows.jsonl"
    case = ["breakout", "--num-envs", "3", "--frameskip", "2", "--no-against-ale", "--with-policy", *SHORT]
    assert run(*case, "--results", str(results)) == 0
    (row,) = read_rows(results)
    assert (row["system"], row["mode"], row["frameskip"]) == ("cule", "with-policy", 2)
    command = shlex.split(row["command"])
    assert command[:3] == ["python", "-m", "cule.bench"]
    assert run(*command[3:], "--quiet", "--results", str(results)) == 0
    first, again = read_rows(results)
    for key in set(KEYS) - {"commit", "date", "fps", "steps_per_second"}:
        assert first[key] == again[key]


def test_bench_policy_draws_actions_from_its_logits() -> None:
    policy = bench.NatureCnn(3)
    final = policy.logits[-1]
    with bench.torch.no_grad():
        final.weight.zero_()
        final.bias.copy_(bench.torch.tensor([0.0, -1e9, 0.0]))
    actions = policy(bench.torch.zeros((200, 4, 84, 84), dtype=bench.torch.uint8))
    assert actions.shape == (200,)
    assert set(actions.tolist()) == {0, 2}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pnog"], "got 'pnog'; the closest are 'pong'"),
        (["pong", "--num-envs", "0"], "expected a whole number of at least 1, got '0'"),
        (["pong", "--seconds", "nan"], "expected a number above 0, got 'nan'"),
        (["pong", "--device", "tpu"], "got 'tpu'"),
        (["pong", "--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["pong", "--results", "/dev/null/rows.jsonl"], "--results has to name a file that can be written"),
        ([], "the following arguments are required: GAME"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bench_says_in_one_sentence_what_is_wrong(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert printed.err.startswith("cule.bench: ") and printed.err.count("\n") == 1
    assert list(tmp_path.rglob("*.jsonl")) == []
