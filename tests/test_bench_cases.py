"""What `python -m cule.bench` measures in a case, and what it does if a case fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from bench_runs import SHORT, fine, make_case, read_json, run

from cule.bench import measure, systems
from cule.bench.cases import Case
from cule.rom import ROM_DIR_VARIABLE, find_game, rom_path

# What is measured ---------------------------------------------------------------------------------


def test_bench_policy_draws_actions_from_its_logits(device: str) -> None:
    policy = systems.NatureCnn(3).to(device)
    final = policy.logits[-1]
    with torch.no_grad():
        final.weight.zero_()
        final.bias.copy_(torch.tensor([0.0, -1e9, 0.0]))
    actions = policy(torch.zeros((200, 4, 84, 84), dtype=torch.uint8, device=device))
    assert actions.shape == (200,)
    assert set(actions.tolist()) == {0, 2}


def test_bench_modes_differ_in_what_is_observed_and_who_acts(device: str) -> None:
    """With and without a policy, actions and observations stay on the device."""
    shapes = {
        "end-to-end": (2, 4, 84, 84),
        "emulation-only": (2, 128),
        "with-policy": (2, 4, 84, 84),
    }
    for mode, shape in shapes.items():
        system = systems.CuleSystem(make_case(mode=mode, device=device))
        assert (system.policy is not None) == (mode == "with-policy")
        before = system.info["frame_number"].clone()
        system.play(3)
        assert system.observations.shape == shape
        assert system.observations.device.type == system.actions.device.type == device
        assert (system.info["frame_number"] == before + 12).all()
        assert system.seconds(1) > 0
        system.close()


def test_bench_counts_distinct_states(device: str) -> None:
    system = systems.CuleSystem(make_case(num_envs=8, device=device))
    system.env.copy_state([0] * 7, [1, 2, 3, 4, 5, 6, 7])
    assert system.distinct_share() == 1 / 8
    system.env.engine.tensors["ram"][3:5, 127] += torch.tensor(
        [1, 2], dtype=torch.uint8, device=device
    )
    assert system.distinct_share() == 3 / 8


class Spreading:
    """A system whose shares of distinct states are known beforehand."""

    def __init__(self, *shares: float):
        self.shares, self.played = list(shares), []

    def play(self, steps: int, *, random: bool) -> None:
        assert random
        self.played.append(steps)

    def distinct_share(self) -> float:
        return self.shares.pop(0)


def test_bench_warms_up_until_games_have_spread_out() -> None:
    more = systems.SPREAD_STEPS
    for shares, played in (
        ((0.1, 1.0), [300]),  # all differ
        (
            (0.1, 0.4, 0.6, 0.9, 0.904),
            [300, more, more, more],
        ),  # they go on to differ more, then do not
        ((0.1, 0.1), [300]),  # they never do
    ):
        system = Spreading(*shares)
        assert systems.spread_out(system, 300) == (sum(played), shares[-1])
        assert system.played == played
        assert not system.shares
    endless = Spreading(*(share / 1000 for share in range(0, 990, 20)))
    assert systems.spread_out(endless, 300)[0] == systems.MAX_SPREAD_STEPS


# Failures -----------------------------------------------------------------------------------------


def test_bench_goes_on_after_a_game_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """A game without a ROM comes between two that can be measured."""
    for game in ("pong", "breakout"):
        (tmp_path / f"{game}.bin").write_bytes(rom_path(find_game(game)).read_bytes())
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    results = tmp_path / "rows.jsonl"
    case = [
        "pong",
        "qbert",
        "breakout",
        "--num-envs",
        "1",
        "--no-against-ale",
        *SHORT,
        "--results",
        str(results),
    ]
    assert run(*case) == 1
    rows = read_json(results)
    assert [row["game"] for row in rows] == ["pong", "qbert", "breakout"]
    assert (
        [row["fps"] is None for row in rows]
        == [row["error"] is not None for row in rows]
        == [False, True, False]
    )
    assert rows[1]["error"].startswith("InvalidValue: expected the ROM of 'qbert' at ")
    printed = capsys.readouterr().out
    assert rows[1]["error"] in printed
    assert "Appended 3 rows" in printed


def too_large(case: Case) -> dict:
    """Stands in for a case with more envs than fit in memory."""
    raise torch.OutOfMemoryError(f"no room for {case.num_envs}, process {os.getpid()}\nsecond line")


def broken(case: Case) -> dict:
    """Stands in for a case after which the process cannot go on."""
    raise RuntimeError(f"CUDA failed in step, process {os.getpid()}")


def dying(case: Case) -> dict:
    """Stands in for a case in which the process is killed."""
    os._exit(9)


@pytest.mark.usefixtures("quick_spawn")
def test_bench_replaces_the_process_that_a_case_ruined(monkeypatch: pytest.MonkeyPatch) -> None:
    with measure.Worker() as worker:

        def of(function: Any) -> Any:
            monkeypatch.setattr(measure, "measure", function)
            return worker.measure(make_case())

        process = of(fine)["cule"].rounds
        assert process != [os.getpid()]
        assert of(too_large) == f"OutOfMemoryError: no room for 2, process {process[0]:.0f}"
        assert of(fine)["cule"].rounds == process
        assert of(broken) == f"RuntimeError: CUDA failed in step, process {process[0]:.0f}"
        after_error = of(fine)["cule"].rounds
        assert after_error != process
        assert "ended" in of(dying)
        assert of(fine)["cule"].rounds not in (process, after_error)


def no_room_for_two(case: Case) -> dict:
    """Stands in for a series of cases, one of which is too large."""
    return too_large(case) if case.num_envs == 2 else fine(case)


@pytest.mark.usefixtures("quick_spawn")
def test_bench_reports_a_lack_of_memory_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(measure, "measure", no_room_for_two)
    results = tmp_path / "rows.jsonl"
    case = [
        "pong",
        "--num-envs",
        "1",
        "2",
        "3",
        "--no-against-ale",
        *SHORT,
        "--results",
        str(results),
    ]
    assert run(*case) == 1
    rows = read_json(results)
    assert [row["num_envs"] for row in rows] == [1, 2, 3]
    assert [row["fps"] is None for row in rows] == [False, True, False]
    assert rows[1]["error"].startswith("OutOfMemoryError: no room for 2")
    assert rows[0]["fps"] == rows[2]["fps"]  # by the same process
    assert rows[1]["error"] in capsys.readouterr().out


def test_bench_keeps_its_rows_when_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def measure_one(_: measure.Worker, case: Case) -> dict:
        if case.game == "qbert":
            raise KeyboardInterrupt
        return fine(case)

    monkeypatch.setattr(measure.Worker, "measure", measure_one)
    results = tmp_path / "rows.jsonl"
    assert (
        run("pong", "qbert", "breakout", "--no-against-ale", *SHORT, "--results", str(results))
        == 130
    )
    assert [row["game"] for row in read_json(results)] == ["pong"]
    assert capsys.readouterr().err.startswith("cule.bench: interrupted")
