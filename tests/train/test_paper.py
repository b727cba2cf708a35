"""The paper's tables and figures: what is measured, that it goes on, and what rows say."""

from __future__ import annotations

import dataclasses
import json
import signal
import threading
import time
import warnings

import pytest
import tyro

from cule.programs import results
from cule.train.sweep.sweep import Sweep
from examples.a2c_vtrace import train
from examples.a2c_vtrace.paper import __main__ as program
from examples.a2c_vtrace.paper import cases, measure
from examples.a2c_vtrace.paper.cases import COLUMNS, ENGINES, GOALS, PLAIN, column_cases
from examples.a2c_vtrace.paper.choices import Choice
from examples.a2c_vtrace.paper.curves import mean_curve
from examples.a2c_vtrace.paper.reports import REPORTS
from examples.a2c_vtrace.paper.rows import Row, facts, left_over, read
from examples.dqn import dqn
from examples.ppo import ppo

PARSERS = {
    "examples.a2c_vtrace.train": train.Args,
    "examples.ppo.ppo": ppo.Args,
    "examples.dqn.dqn": dqn.Args,
}
# An evaluation of a few frames.
QUICK = {"eval_episodes": 1, "eval_max_frames": 80, "width": 0.1, "eval_every": 0,
         "stop_at_score": None}  # fmt: skip


def choice(name, **changes):
    report = REPORTS[name]
    asked = {"games": report.games, "num_envs": report.num_envs, "gpus": (2,)} | changes
    return Choice(**asked)


def invented(name, **changes):
    """A row for each case of a report, as it would be measured, and whatever else it shows."""
    rows = []
    for number, case in enumerate(REPORTS[name].cases(choice(name, **changes))):
        for wanted in case.wanted:
            engine = wanted["engine"]
            row = {
                **wanted, "system": "ale-py" if engine == "ale-py" else "cule",
                "cuda": "13.0" if engine == "cule" or wanted["mode"] == "training" else None,
                "env_device": "cpu" if engine == "cule-cpu" else None,
                "commit": "abcdef123456", "date": "2026-11-27", "device_name": "a device",
                "fps": 1000.0 * (number + 1), "updates_per_second": 5.0, "seconds": 60.0,
                "seconds_to_score": 30.0 + number, "frames_to_score": 2_000_000,
                "evaluations": [{"seconds": 1.0, "score": -20.0}, {"seconds": 9.0, "score": 18.0}],
                "steps_in_bin": 10, "bin_fps": [9e5, 5e5], "bin_resets": [0, 3],
                "bin_distinct_share": [0.1, 0.5],
            }  # fmt: skip
            del row["engine"]
            rows.append(row)
    return rows


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def shown(path, name, capsys, *words):
    assert program.main([name, "--show", "--rows", str(path), *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", REPORTS)
def test_each_case_is_told_to_its_program_and_is_done_by_its_rows(name, tmp_path):
    few = {"games": ("pong", "assault"), "seeds": (0,)}
    asked = REPORTS[name].cases(choice(name, **few))
    assert len({case.name for case in asked}) == len(asked) > 0
    budget = measure.Budget(("cuda:0",), 3.0, 2, 5, 10, 4, tmp_path, tmp_path / "rows.jsonl", False)
    for case in asked:
        if case.module is not None:
            command = measure.job_of(case, budget).command
            words = command[command.index(case.module) + 1 :]
            told = tyro.cli(PARSERS[case.module], args=words)
            assert all(getattr(told, key) == value for key, value in case.options.items())
            assert told.max_seconds == 3.0 and told.num_threads == 4
            assert ("torch.distributed.run" in command) == (case.gpus > 1)
    rows = [Row(row, "x.jsonl", facts(row)) for row in invented(name, **few)]
    assert left_over(asked, rows) == []
    assert left_over(asked, rows[1:]) == [asked[0]]


def test_table_3_has_the_papers_eight_columns_and_controls():
    asked = column_cases(COLUMNS[:8], ("pong",), (0,), (4,))
    keys = ("engine", "num_envs", "num_batches", "num_steps", "steps_per_update")
    assert [tuple(case.wanted[0][key] for key in keys) for case in asked] == [
        ("ale-py", 120, 1, 5, 5), ("ale-py", 120, 5, 5, 1), ("ale-py", 120, 20, 20, 1),
        ("ale-py", 1200, 20, 20, 1), ("cule", 1200, 1, 5, 5), ("cule", 1200, 5, 5, 1),
        ("cule", 1200, 20, 20, 1), ("cule", 4800, 20, 20, 1),
    ]  # fmt: skip
    assert [case.gpus for case in asked] == [1] * 7 + [4]
    assert set(program.ColumnName.__args__) == {column.name for column in COLUMNS}
    assert set(program.Name.__args__) == set(REPORTS)


def test_table_4_and_figure_4_have_the_core_on_the_cpu_as_third_engine():
    for name in ("table4", "figure4", "figure2"):
        found = {
            (values["engine"], values["mode"])
            for case in REPORTS[name].cases(choice(name))
            for values in case.wanted
        }
        assert {engine for engine, _ in found} == set(ENGINES)
        if name == "figure4":
            assert len(found) == 9


@pytest.mark.parametrize("name", REPORTS)
def test_what_rows_say_is_shown_with_its_source_and_drawn(name, tmp_path, capsys):
    few = {"games": ("pong", "assault")}
    path = written(tmp_path / "rows.jsonl", invented(name, **few))
    plot = tmp_path / "figure.png"
    drawn = ("--plot", str(plot)) if REPORTS[name].draw else ()
    text = shown(path, name, capsys, "--games", *few["games"], *drawn)
    table = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert table
    for line in table:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) > 2 and all(cells[1:]) and "." not in cells[1:3]
    assert "- [a] rows.jsonl, abcdef1, a device" in text and "[b]" not in text
    if drawn:
        assert plot.read_bytes().startswith(b"\x89PNG") and plot.stat().st_size > 10_000


def test_each_cell_says_which_rows_it_is_from(tmp_path, capsys):
    rows = invented("table3", seeds=(0, 1))
    for row in rows:
        if row["seed"] == 1:
            row |= {"commit": "fedcba987654", "date": "2026-11-28"}
    path = written(tmp_path / "rows.jsonl", rows)
    newest = shown(path, "table3", capsys)
    assert "fedcba9" in newest and "abcdef1" not in newest
    both = shown(path, "table3", capsys, "--commits", "all")
    assert " [a,b] |" in both and both.count("- [") == 2
    older = shown(path, "table3", capsys, "--commits", "abcdef")
    assert "abcdef1" in older and "fedcba9" not in older


def test_table_3_has_means_over_seeds_and_says_what_was_not_reached(tmp_path, capsys):
    def row(seed, seconds, **changes):
        column = COLUMNS[6]
        return {
            **PLAIN, **column.settings, "game": "pong", "num_envs": 1200, "seed": seed,
            "stop_at_score": 18.0, "system": "cule", "cuda": "13.0", "mode": "training",
            "commit": "abc", "date": "2026-11-27", "device_name": "d", "fps": 250_000.0,
            "updates_per_second": 100.0, "seconds": 60.0, "seconds_to_score": seconds,
            "frames_to_score": None if seconds is None else seconds * 1e6, **changes,
        }  # fmt: skip

    path = tmp_path / "rows.jsonl"
    words = ("--games", "pong", "--columns", "vtrace20")
    # The newest row of a seed counts; one that shared its GPU, or is of other settings, does not.
    written(path, [
        row(0, 99.0), row(0, 40.0, date="2026-11-28"), row(1, 50.0), row(2, None),
        row(2, 7.0, trainings_on_gpu=3), row(2, 7.0, optimizer="muon"),
    ])  # fmt: skip
    lines = shown(path, "table3", capsys, *words).splitlines()
    cells = [line.split(" | ")[1].strip(" |") for line in lines if line.startswith("| pong")]
    assert cells == ["250 [a]", "100.0", "45.0 (2 of 3)", "45.0"]
    written(path, [row(0, None)])
    assert "| > 60 |" in shown(path, "table3", capsys, *words)


def test_rows_without_a_key_are_told_of_or_left_out(tmp_path, capsys):
    rows = invented("table4")
    bare = {key: value for key, value in rows[0].items() if key not in ("game", "num_envs")}
    no_speed = {**rows[1], "fps": None}
    no_mode = {key: value for key, value in rows[2].items() if key != "mode"}
    lacking = ("updates_per_second", "evaluations", "device_name", "date")
    quiet = {key: value for key, value in rows[3].items() if key not in lacking}
    path = written(tmp_path / "rows.jsonl", [bare, no_speed, no_mode, quiet, *rows[4:]])
    with pytest.warns(UserWarning, match=r"left out line 3 of .*rows.jsonl.*'mode'"):
        assert len(read([path])) == len(rows) - 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = shown(path, "table4", capsys)
    assert f"{rows[3]['fps']:,.0f}" in text and f"| {rows[0]['fps']:,.0f} " not in text
    path.write_text("# Results")
    with pytest.raises(ValueError, match=r"expected a file of JSON lines, got .*rows.jsonl"):
        read([path])


def test_rows_that_lack_what_is_shown_are_no_table(tmp_path, capsys):
    rows = [row | {"evaluations": []} for row in invented("figure5", seeds=(0,))]
    path = written(tmp_path / "rows.jsonl", rows)
    for name in ("figure5", "figure3"):
        assert program.main([name, "--show", "--rows", str(path)]) == 2
        told = capsys.readouterr()
        assert f"expected rows that have what {name} shows, got none in {path}" in told.err
        assert told.out == ""
    lines = shown(written(path, rows), "table3", capsys, "--commits", "abc")
    assert lines.count("| pong") == lines.count("| assault") == 4
    written(path, [row for row in rows if row["game"] == "pong"])
    assert "| assault" not in shown(path, "table3", capsys)


@pytest.mark.parametrize(
    ("name", "left_out", "missing"),
    [
        ("table3", {"engine": "ale-py"},
         "Not measured: ale-py, 120 envs, 1 batch; ale-py, 120, 5; ale-py, 120, 20; ale-py, 1,200"),
        ("table3", {"game": "assault"}, "8 GPUs, 1,200 on each, 20; assault."),
        ("table4", {"engine": "cule-cpu", "num_envs": 256}, " | not measured | "),
        ("figure2", {"engine": "cule", "num_envs": 32}, "measured: emulation only, cule, 32 envs"),
        ("figure2", {"engine": "cule", "game": "pong"}, "| 128 | 1 of 2 |"),
        ("figure3", {"engine": "cule", "game": "pong"}, "Not measured: pong, cule."),
    ],
)  # fmt: skip
def test_what_has_no_row_is_named(name, left_out, missing, tmp_path, capsys):
    games = ("pong", "assault")
    rows = invented(name, games=games, seeds=(0,))
    path = tmp_path / "rows.jsonl"
    words = ("--games", *games)

    def text(some):
        return " ".join(shown(written(path, some), name, capsys, *words).split())

    assert missing not in text(rows)
    kept = [
        row
        for row in rows
        if not left_out.items() <= (row | {"engine": facts(row)["engine"]}).items()
    ]
    assert len(kept) < len(rows)
    assert missing in text(kept)


def test_rows_of_old_programs_have_the_settings_that_they_lack():
    old = {"mode": "training", "system": "cule", "cuda": "12.8", "n_steps": 20, "game": "pong"}
    known = facts(old)
    assert (known["num_steps"], known["optimizer"], known["engine"]) == (20, "adam", "cule")
    assert facts({"mode": "with-policy", "system": "cule", "cuda": "13", "env_groups": 1})[
        "engine"] == "cule-cpu"  # fmt: skip


def test_curves_are_means_and_deviations_of_seeds():
    seconds, means, deviations = mean_curve([[(0.0, 0.0), (10.0, 10.0)], [(0.0, 4.0), (5.0, 14.0)]])
    assert (seconds[0], seconds[-1]) == (0.0, 10.0)
    assert (means[0], means[-1]) == (2.0, 12.0) and (deviations[0], deviations[-1]) == (2.0, 2.0)
    assert means[50] == (5.0 + 14.0) / 2


def test_emulation_is_measured_once_and_what_is_left_later(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # In this process: one that is spawned takes seconds to import torch.
    monkeypatch.setattr(measure.Worker, "call", lambda self, function, *words: function(*words))
    budget = ["--seconds", "0.04", "--rounds", "2", "--warmup-steps", "2", "--num-threads", "1",
              "--steps", "20", "--no-progress", "--results", "rows.jsonl"]  # fmt: skip
    words = ["figure2", "--games", "pong", "--loads", "end-to-end", *budget]
    words += ["--engines", "cule-cpu", "ale-py"]
    assert program.main([*words, "--num-envs", "2"]) == 0
    first = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(row)["system"] for row in first] == ["cule", "ale-py"]
    assert "| emulation only, cule-cpu | 2 | 1 of 1 |" in capsys.readouterr().out
    assert program.main([*words, "--num-envs", "2", "3"]) == 0
    assert capsys.readouterr().err == "figure2: 1 of 2 cases are left.\n"
    rows = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert rows[:2] == first and [json.loads(row)["num_envs"] for row in rows] == [2, 2, 3, 3]
    monkeypatch.setattr(results, "commit", lambda: "another")
    assert program.main(["figure3", "--games", "pong", "--num-envs", "2", *budget]) == 0
    told = capsys.readouterr()
    assert "1 of 1 cases" in told.err and "| pong, cule-cpu | 20 |" in told.out
    row = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[-1])
    assert len(row["bin_fps"]) == len(row["bin_resets"]) == len(row["bin_distinct_share"]) == 2
    assert row["bin_distinct_share"][0] > 0 and row["fps"] > 0


def test_a_case_that_fails_is_told_and_the_others_are_measured(tmp_path, monkeypatch, capsys):
    def fail(game, *_):
        if game == "asterix":
            raise RuntimeError("broken")
        return {"mode": "step-by-step", "system": "cule", "cuda": None, "game": game, "fps": 1.0,
                "num_envs": 2, "commit": results.commit()}  # fmt: skip

    def call(self, function, *words):
        try:
            return fail(*words)
        except RuntimeError as problem:
            return f"RuntimeError: {problem}"

    monkeypatch.setattr(measure.Worker, "call", call)
    monkeypatch.setattr(program, "show", lambda *_: None)
    path = tmp_path / "rows.jsonl"
    status = program.main(
        ["figure3", "--games", "asterix", "pong", "--num-envs", "2", "--engines", "cule-cpu",
         "--no-progress", "--results", str(path)]
    )  # fmt: skip
    assert status == 1
    assert "paper: steps-cule-cpu-asterix-2: RuntimeError: broken" in capsys.readouterr().err
    assert [json.loads(row)["game"] for row in path.read_text().splitlines()] == ["pong"]


def test_ctrl_c_stops_after_the_cases_that_are_being_measured(tmp_path, monkeypatch, capsys):
    measured = []

    def call(self, function, game, *words):
        measured.append(game)
        if len(measured) == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.05)
        return {"mode": "step-by-step", "system": "cule", "cuda": None, "game": game, "fps": 1.0,
                "num_envs": 2, "commit": results.commit()}  # fmt: skip

    monkeypatch.setattr(measure.Worker, "call", call)
    monkeypatch.setattr(program, "show", lambda *_: None)
    path = tmp_path / "rows.jsonl"
    words = ["figure3", "--games", "atari57", "--num-envs", "2", "--engines", "cule-cpu"]
    assert program.main([*words, "--no-progress", "--results", str(path)]) == 130
    assert 2 <= len(measured) == len(path.read_text().splitlines()) < 10
    assert "Stopped. To go on: " in capsys.readouterr().err


def test_trainings_are_run_once_and_their_rows_have_evaluations(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cases, "QUIET", {**cases.QUIET, **QUICK})
    columns = [
        dataclasses.replace(column, num_envs=4, settings={
            "num_batches": 1, "num_steps": 4, "steps_per_update": 4, "warmup_steps": 0})
        for column in COLUMNS if column.name == "a2c"
    ]  # fmt: skip
    goals = dict.fromkeys(GOALS)
    monkeypatch.setattr(cases, "GOALS", goals)
    monkeypatch.setattr(program, "COLUMNS", columns)
    words = ["table3", "--games", "pong", "--seeds", "3", "--seconds", "0.2", "--num-threads", "1",
             "--no-progress", "--folder", str(tmp_path)]  # fmt: skip
    words += ["--results", str(tmp_path / "r.jsonl"), "--engines", "cule-cpu"]
    assert program.main(words) == 0
    (row,) = (json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines())
    assert (row["system"], row["env_device"], row["seed"]) == ("cule", "cpu", 3)
    (evaluation,) = row["evaluations"]
    assert evaluation["score"] == row["score"] and evaluation["frames"] == row["frames"]
    capsys.readouterr()
    monkeypatch.setattr(Sweep, "run", lambda *_: pytest.fail("all had been measured"))
    assert program.main(words) == 0
    assert capsys.readouterr().err == "table3: 0 of 1 cases are left.\n"


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("table3 --show --games breakout", "expected games to be some of assault, asterix"),
        ("table4 --engines cule", "expected a GPU for engine cule, or engines ale-py cule-cpu"),
        ("table3 --plot x.png", "expected --plot with figure2, figure3, figure4, figure5"),
        ("figure3 --steps 15", "expected steps to be a multiple of 10, got 15"),
        ("table4 --num-envs 0", "expected num_envs of at least 1, got 0"),
        ("table4 --commits all", "expected --rows and --commits with --show"),
        ("table4 --seconds 0", "expected seconds to be above 0"),
    ],
)
def test_wrong_arguments_are_told_in_a_sentence(words, sentence, monkeypatch, capsys):
    monkeypatch.setattr(program, "devices_of", lambda *_: ["cpu"])
    assert program.main(words.split()) == 2
    assert sentence in capsys.readouterr().err
