"""The benchmark: rows with the agreed keys, cases that fail, plots, sentences for mistakes. No
timing is asserted."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.util
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bench_runs import AGREED_KEYS, SHORT, fine, make_case, read_json, run

from cule.bench import measure, systems
from cule.bench.learner import STEPS, Learner
from cule.bench.rows import Row
from cule.rom import find_game

pytestmark = pytest.mark.usefixtures("quick_spawn")
KEYS = tuple(field.name for field in dataclasses.fields(Row))
MEASURED_KEYS = {"commit", "date", "fps", "steps_per_second", "rounds"}


def test_bench_appends_a_row_for_each_system_and_prints_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    results = tmp_path / "new" / "rows.jsonl"
    arguments = [
        "pong",
        "ALE/MsPacman-v5",
        "--num-envs",
        "1",
        "2",
        *SHORT,
        "--results",
        str(results),
    ]
    assert run(*arguments) == 0
    rows = read_json(results)
    assert [(row["game"], row["num_envs"], row["system"]) for row in rows] == [
        (game, num_envs, system)
        for game in ("pong", "ms_pacman")
        for num_envs in (1, 2)
        for system in ("cule", "ale-py")
    ]
    for row in rows:
        assert tuple(row) == KEYS
        assert row.keys() >= AGREED_KEYS
        assert len(row["rounds"]) == 2
        assert min(row["rounds"]) <= row["fps"] <= max(row["rounds"])
        assert row["error"] is None
        if row["system"] == "cule":
            assert 84 * 84 * 4 < row["bytes_per_env"] < 2**20
            assert row["warmup_steps"] >= 2
            assert row["distinct_share"] in (0.5, 1.0)
            assert row["faulty_envs"] == 0
        assert row["mode"] == "end-to-end"
        assert row["rom_md5"] == find_game(row["game"]).md5
        assert (row["driver"], row["cuda"]) == (None, None)
        assert row["fps"] > 0
        assert row["steps_per_second"] == pytest.approx(row["fps"] / 4, rel=1e-2)
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == [
        "end-to-end,", "game", "pong", "pong", "ms_pacman", "ms_pacman", "median", "median",
        "Appended",
    ]  # fmt: skip
    assert printed.err == ""


@pytest.mark.parametrize("mode", ["with-policy", "emulation-only"])
def test_bench_command_of_a_row_measures_its_case_again(mode: str, tmp_path: Path) -> None:
    results = tmp_path / "rows.jsonl"
    case = [
        "breakout",
        "--num-envs",
        "3",
        "--frameskip",
        "2",
        "--no-against-ale",
        f"--{mode}",
        *SHORT,
    ]
    assert run(*case, "--results", str(results)) == 0
    (row,) = read_json(results)
    assert (row["system"], row["mode"], row["frameskip"]) == ("cule", mode, 2)
    command = shlex.split(row["command"])
    assert command[:3] == ["python", "-m", "cule.bench"]
    assert run(*command[3:], "--quiet", "--results", str(results)) == 0
    first, again = read_json(results)
    for key in set(KEYS) - MEASURED_KEYS:
        assert first[key] == again[key]


def test_bench_measures_envpool_where_it_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    pytest.importorskip("envpool")
    results = tmp_path / "rows.jsonl"
    assert (
        run("pong", "--num-envs", "2", "--against-envpool", *SHORT, "--results", str(results)) == 0
    )
    assert [row["system"] for row in read_json(results)] == ["cule", "ale-py", "EnvPool"]
    assert all(row["fps"] > 0 for row in read_json(results))
    assert "EnvPool FPS" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["with-policy", "with-training"])
def test_bench_measures_groups_of_cpu_envs_under_a_learner(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """A row for each number of groups and of threads; EnvPool plays in batches, too."""
    results = tmp_path / "rows.jsonl"
    others = ["--against-envpool"] if importlib.util.find_spec("envpool") else []
    assert run(
        "pong", "--num-envs", "4", f"--{mode}", "--env-groups", "1", "2", "--num-threads", "1",
        "--results", str(results), *others, *SHORT,
    ) == 0  # fmt: skip
    rows = read_json(results)
    assert [row["env_groups"] for row in rows] == [1] * (2 + len(others)) + [2] * (2 + len(others))
    assert {row["mode"] for row in rows} == {mode} and {row["num_threads"] for row in rows} == {1}
    assert all(row["fps"] > 0 for row in rows)
    assert "2 groups of CPU envs, 1 threads" in capsys.readouterr().out
    again = shlex.split(rows[-1]["command"])
    assert again[again.index("--env-groups") + 1] == "2" and f"--{mode}" in again


def test_learner_learns_after_some_steps_of_all_envs() -> None:
    """Batches of any envs, of which some are ahead of others."""
    learner = Learner(3, 4, torch.device("cpu"), learns=True)
    before = learner.heads.weight.clone()
    for step in range(2 * STEPS + 2):
        ids = np.array([0, 1]) if step % 2 else np.array([3, 2])
        observations = torch.full((2, 4, 84, 84), step, dtype=torch.uint8)
        actions = learner.act(ids, observations, torch.ones(2), torch.zeros(2, dtype=torch.bool))
        assert actions.shape == (2,) and set(actions.tolist()) <= {0, 1, 2}
        assert learner.updates == int(step >= 2 * STEPS - 1)
    assert not torch.equal(before, learner.heads.weight)


class EnvPool:
    """A stand-in for EnvPool, which has all of ale-py's games except one."""

    @staticmethod
    def list_all_envs() -> list[str]:
        return ["Pong-v5", "MsPacman-v5"]


@pytest.mark.parametrize(
    ("modules", "arguments", "sentence"),
    [
        (
            {"envpool": None},
            ["--against-envpool"],
            "expected EnvPool for --against-envpool (pip inst",
        ),
        ({"envpool": EnvPool}, ["--against-envpool"], "expected a game that EnvPool has for "),
        (
            {"torchcule": None},
            ["--against-original"],
            "expected torchcule (docs/benchmarks.md) for ",
        ),
        (
            {},
            ["--against-original", "--with-policy"],
            "expected --against-original without --with-",
        ),
    ],
    ids=["no EnvPool", "EnvPool without the game", "no CuLE 0.1", "CuLE 0.1 with a policy"],
)
def test_bench_checks_the_others_before_it_measures(
    modules: dict[str, Any],
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    """It checks all cases: here only the last game is unknown to another system."""
    monkeypatch.chdir(tmp_path)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)

    def measured(*_: Any) -> None:
        raise AssertionError("a case was measured")

    monkeypatch.setattr(measure.Worker, "measure", measured)
    assert run("pong", "ms_pacman", "qbert", *arguments, *SHORT) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.startswith("cule.bench: ") and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("checkout", [True, False])
def test_bench_makes_no_folder_for_its_results(
    checkout: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Results go to the checkout's folder if there is one, else to a file in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure.Worker, "measure", lambda _, case: fine(case))
    if checkout:
        (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    assert run("pong", "--no-against-ale", *SHORT) == 0
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    today = datetime.date.today().isoformat()
    name = f"benchmarks/results/{today}.jsonl" if checkout else f"cule-bench-{today}.jsonl"
    assert str(file.relative_to(tmp_path)) == name
    assert [row["game"] for row in read_json(file)] == ["pong"]
    assert f"Appended 1 rows to {name}." in capsys.readouterr().out


def test_envpool_is_refused_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(
        ValueError, match=r"expected EnvPool for --against-envpool \(pip install envpool\)"
    ):
        systems.EnvPoolSystem(make_case(against_envpool=True))


TORCHCULE = """
import pathlib, torch

class Cart:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        assert self.path.is_file()
    def game_name(self):
        name = "Video Olympics (1978) (Atari)", "Bowling (1978) (Atari) [!]"
        return name[self.path.stem != "pong"]

class Env:
    def __init__(
        self, path, num_envs, color_mode, device, rescale, frameskip, repeat_prob, episodic_life
    ):
        self.cart, self.num_envs, self.calls = Cart(path), num_envs, []
        assert (color_mode, device.type, rescale, repeat_prob) == ("gray", "cpu", True, 0.0)
    def train(self, frameskip):
        self.calls.append("train")
    def reset(self, initial_steps):
        self.calls.append("reset")
    def sample_random_actions(self):
        return torch.zeros(self.num_envs, dtype=torch.uint8)
    def step(self, actions):
        assert self.calls == ["train", "reset"] and len(actions) == self.num_envs
"""


@pytest.fixture
def torchcule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stand-in for CuLE 0.1, whose compiled part needs a GPU's driver to be imported."""
    package = tmp_path / "original" / "torchcule"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "atari.py").write_text(TORCHCULE)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv(
        "PYTHONPATH", f"{package.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    )
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchcule"]:
        del sys.modules[name]


@pytest.mark.usefixtures("torchcule")
def test_bench_measures_the_original_where_it_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    results = tmp_path / "rows.jsonl"
    arguments = ["pong", "--num-envs", "2", "--against-original", "--no-against-ale", *SHORT]
    assert run(*arguments, "--results", str(results)) == 0
    ours, original = read_json(results)
    assert (ours["system"], original["system"]) == ("cule", "CuLE 0.1")
    assert original["fps"] > 0 and original["bytes_per_env"] is None
    assert ours["command"] == original["command"] and "--against-original" in ours["command"]
    assert "CuLE 0.1 FPS" in capsys.readouterr().out


@pytest.mark.usefixtures("torchcule")
def test_roms_that_the_original_takes_for_others_are_refused() -> None:
    assert systems.OriginalSystem(make_case("bowling", against_original=True)).env.num_envs == 2
    with pytest.raises(
        ValueError, match=r"expected a ROM that CuLE 0\.1 knows, got 'ms_pacman', which it takes"
    ):
        systems.OriginalSystem(make_case("ms_pacman", against_original=True))
    with pytest.raises(ValueError, match="expected --against-original without --with-policy"):
        systems.OriginalSystem(make_case(against_original=True, mode="with-policy"))


def test_original_is_refused_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchcule", None)
    with pytest.raises(
        ValueError, match=r"expected torchcule \(docs/benchmarks.md\) for --against-original"
    ):
        systems.OriginalSystem(make_case(against_original=True))
