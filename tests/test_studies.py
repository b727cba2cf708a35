"""benchmarks.studies: cases are recorded by their operations, and rows become tables."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest
from matplotlib.figure import Figure

from benchmarks.studies import frameworks, tables
from benchmarks.studies.__main__ import main
from benchmarks.studies.case import Case, Enough, Iterations, Options
from benchmarks.studies.marks import Mark, Marks
from cule.scope.annotations import listen, open_annotations, stop_listening

SMALL = ["--device", "cpu", "--num-envs", "4", "--num-steps", "4", "--minibatches", "2",
         "--epochs", "1", "--warm-up", "3", "--iterations", "2", "--tries", "1"]  # fmt: skip


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def made(case, milliseconds, python, simulator, gpu=0.0):
    """A row, written by hand, of three operations."""
    rest = milliseconds - python - simulator - gpu
    return {
        "case": case, "policy": "on-policy", "task": "pong", "iteration_milliseconds": milliseconds,
        "reference": {"times": [milliseconds, 2 * milliseconds, 9 * milliseconds]},
        "breakdown": [
            ["inference", "cpu", "python", python], ["simulation", "cpu", "simulator", simulator],
            ["backpropagation", "cpu", "backend", rest], ["backpropagation", "gpu", "", gpu],
        ],
        "transitions": [
            ["inference", "python", "backend", 1000.0], ["backpropagation", "python", "backend", 7],
            ["simulation", "python", "simulator", 4.0],
        ],
        "gpu_use": [],
    }  # fmt: skip


@pytest.fixture
def planted(monkeypatch):
    """A module of a program, whose functions say which operations are open."""
    module = ModuleType("planted_program")
    module.said = []

    def step():
        module.said.append(("step", opened()))

    def act():
        module.step()
        module.said.append(("act", opened()))

    def make():
        return act

    def rest():
        module.said.append(("rest", opened()))

    module.step, module.act, module.make, module.rest = step, act, make, rest
    monkeypatch.setitem(sys.modules, "planted_program", module)
    return module


class Ended:
    """Notes which annotations end."""

    def __init__(self):
        self.names = []

    def began(self, annotation):
        pass

    def ended(self, annotation):
        self.names.append(annotation.name)


def opened():
    return [one.name for _, some in open_annotations().values() for one in some]


def test_the_outermost_marked_function_is_the_operation(planted):
    Marks([Mark("planted_program:step", "simulation"), Mark("planted_program:act", "inference")])
    planted.act()
    planted.step()
    assert planted.said == [
        ("step", ["inference"]), ("act", ["inference"]), ("step", ["simulation"])
    ]  # fmt: skip
    assert opened() == []


def test_an_operation_may_go_on_to_the_end_of_the_iteration(planted):
    marks = Marks([
        Mark("planted_program:step", "simulation"),
        Mark("planted_program:rest", "backpropagation", to_end=True),
    ])  # fmt: skip
    iterated = Iterations(marks, 1)
    iterated()
    ended = Ended()
    listen(ended)
    planted.rest()
    planted.step()
    assert opened() == ["iteration", "backpropagation"]
    with pytest.raises(Enough):
        iterated()
    stop_listening(ended)
    assert ended.names == ["backpropagation", "iteration"]
    planted.step()
    assert [one for _, one in planted.said] == [
        ["iteration", "backpropagation"], ["iteration", "backpropagation"], ["simulation"]
    ]  # fmt: skip


def test_a_function_that_is_returned_may_be_the_operation(planted):
    Marks([Mark("planted_program:make", "inference", returned=True)])
    function = planted.make()
    assert opened() == []
    function()
    assert planted.said[-1] == ("act", ["inference"])


@pytest.mark.slow
def test_frameworks_have_rows_a_table_and_a_picture(tmp_path, capsys):
    results, plot = tmp_path / "rows.jsonl", tmp_path / "picture.png"
    words = ["frameworks", *SMALL, "--systems", "cule.train, eager", "stable-baselines3",
             "CleanRL", "--results", str(results), "--plot", str(plot)]  # fmt: skip
    assert main(words) == 0
    found = rows(results)
    assert [row["case"] for row in found] == ["cule.train, eager", "stable-baselines3, eager"]
    for row in found:
        assert row["mode"] == "study-frameworks" and "cleanrl" not in row
        parts = sum(value for *_, value in row["breakdown"])
        assert parts == pytest.approx(row["iteration_milliseconds"], rel=1e-3)
        for operation in tables.OPERATIONS:
            assert tables.share(row, operation) > 0.001, operation
        assert tables.share(row, "simulation", "simulator") > 0
        assert tables.transitions(row, "python", "backend", "backpropagation") > 100
        # One call of cule for each step, and no other simulator.
        assert tables.transitions(row, "python", "simulator") == 4
        assert len(row["all_milliseconds"]) == 2
    said = capsys.readouterr()
    assert "CleanRL, eager is left out: it needs --cleanrl FOLDER" in said.err
    assert said.out.count("\n| stable-baselines3, eager |") == 5
    assert plot.stat().st_size > 1000


@pytest.mark.slow
def test_off_policy_learning_is_recorded(tmp_path, capsys):
    results = tmp_path / "rows.jsonl"
    words = ["algorithms", *SMALL, "--num-steps", "40", "--systems", "stable-baselines3, DQN",
             "--results", str(results)]  # fmt: skip
    assert main(words) == 0
    (row,) = rows(results)
    assert row["policy"] == "off-policy" and row["task"] == "CartPole-v1"
    assert tables.share(row, "simulation", "simulator") > 0
    assert tables.transitions(row, "python", "backend", "backpropagation") > 100
    assert "| stable-baselines3, DQN | off-policy | CartPole-v1 |" in capsys.readouterr().out


@pytest.mark.slow
def test_scale_up_has_each_process(tmp_path, capsys):
    results, plot = tmp_path / "rows.jsonl", tmp_path / "picture.svg"
    words = ["scale-up", *SMALL, "--workers", "2", "--results", str(results), "--plot", str(plot)]
    assert main(words) == 0
    (row,) = rows(results)
    found = {one["process"]: one for one in row["processes"]}
    assert set(found) == {"main", "worker-0", "worker-1", "trainer", "evaluator"}
    for name in ("worker-0", "worker-1", "evaluator"):
        assert found[name]["simulator"] > 0 and found[name]["operations"]["inference"] > 0
    assert found["trainer"]["operations"]["backpropagation"] > 0
    assert found["main"]["waiting"] > found["main"]["backend"]
    assert "| worker-1 |" in capsys.readouterr().out
    assert "self-play" in plot.read_text()


def test_tables_have_shares_medians_and_transitions():
    few = [made("a, eager", 90.0, 9.0, 9.0), made("a, eager", 100.0, 20.0, 30.0, gpu=10.0),
           made("a, eager", 300.0, 3.0, 3.0), {"case": "b", "problem": "none"}]  # fmt: skip
    text = tables.tables("frameworks", few)
    lines = text.splitlines()
    assert lines[0].startswith("| case | ms an iteration | Python | simulator |")
    assert lines[1] == "| --- |" + " ---: |" * 7
    assert "CUDA API" not in lines[0], "a column of zeros"
    # The try in the middle; its iterations before the recording have a median, too.
    assert lines[2] == "| a, eager | 200.0 | 20.0% | 30.0% | 40.0% | 10.0% | 1,007 | 4 |"
    assert "| a, eager | backpropagation | 50.0% | 0.0% | 0.0% | 40.0% | 10.0% | 7 |" in text
    assert "| a, eager | on-policy | pong | 200.0 |" in tables.tables("algorithms", few)


def test_gpus_are_used_less_than_is_said():
    row = made("4 workers", 100.0, 20.0, 30.0) | {
        "processes": [{"process": "main", "seconds": 2.0, "python": 0.5, "simulator": 0.0,
                       "backend": 0.5, "cuda_api": 0.25, "waiting": 0.75, "gpu_seconds": 0.125}],
        "gpu_use": [{"gpu": "a GPU", "nvml": 100.0, "kernels": 2.5}],
    }  # fmt: skip
    text = tables.tables("scale-up", [row])
    assert "| main | 2.000 | 0.500 | 0.500 | 0.250 | 0.750 | 0.125 |" in text
    assert "4 workers, a GPU: nvidia-smi says 100.0%, kernels ran 2.5% of the time" in text


def test_bars_are_as_long_as_an_iteration():
    figure = Figure()
    tables.draw(figure, [made("a", 100.0, 20.0, 30.0, gpu=10.0), made("b", 10.0, 2.0, 2.0)])
    (axes,) = figure.axes
    widths = [patch.get_width() for patch in axes.patches]
    assert widths[:4] == pytest.approx([20, 30, 10, 40])
    assert sum(widths) == pytest.approx(200)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_a_case_that_fails_says_why(tmp_path, monkeypatch):
    results = tmp_path / "rows.jsonl"
    words = ["frameworks", *SMALL, "--systems", "stable-baselines3", "--patience", "0.01",
             "--results", str(results)]  # fmt: skip
    assert main(words) == 0
    (row,) = rows(results)
    assert row["problem"] == "it takes longer than 0.01 s"


def test_what_is_not_there_is_said():
    case = Case(lambda *_: None, {"system": "a"}, needs=("json", "no_such_package"))
    assert case.lacks(Options()) == "no_such_package"
    assert frameworks.CASES["cule.train, CUDA graphs"].lacks(Options()) == (
        "a device of the kind cuda"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["frameworks", "--systems", "TensorFlow"], "got TensorFlow"),
        (["simulators", "--tries", "0"], "expected at least 1 as numbers"),
        (["scale-up", "--workers", "0"], "expected at least 1 as numbers"),
        (["scale-up", "--warm-up", "1"], "at least 2 as --warm-up"),
    ],
)
def test_wrong_words_are_refused_at_once(words, message, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err
