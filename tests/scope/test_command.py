"""`python -m cule.scope`, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cule import scope
from cule.scope import __main__ as program
from cule.scope import calibration, check
from cule.scope.calibration import fit, fit_operations, interval, noise, scaled
from cule.scope.costs import Costs
from cule.scope.events import Call, Mark
from cule.scope.instruments import INSTRUMENTS
from cule.scope.program import program_of
from cule.scope.recording import Recording
from cule.scope.windows import Program, measure
from tests.scope.made import marks, process

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys, time
import torch
from cule import scope
print("arguments", sys.argv[1:])
numbers = torch.zeros(4)
for _ in range(30):
    with scope.iteration():
        with scope.operation("add"):
            for _ in range(20):
                numbers.add_(1)
        with scope.operation("sleep"):
            time.sleep(0.001)
print("sum", numbers.sum().item())
sys.exit(7)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(SCRIPT)
    return path


def run(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "cule.scope", *map(str, words)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def recorded(script, tmp_path_factory):
    """A recording of the script, and what was printed."""
    folder = tmp_path_factory.mktemp("recorded") / "scope"
    done = run("run", "--out", folder, "--iterations", "10:20", "--", script, "--game", "pong")
    assert done.returncode == 7, done.stderr
    return folder, done.stdout


def test_run_records_a_script_which_goes_on_to_its_end(recorded):
    folder, printed = recorded
    lines = printed.splitlines()
    assert lines[:2] == ["arguments ['--game', 'pong']", "sum 2400.0"]
    assert lines[2].startswith(f"The recording is in {folder}")
    recording = Recording(folder)
    (one,) = recording.processes
    assert one.process.iterations == 10
    assert one.process.about["reference"]["iterations"] == 8
    rows = {(row.operation, row.level): row for row in recording.breakdown()}
    assert rows["add", "backend"].transitions == 200
    assert rows["sleep", "python"].seconds >= 0.01


def test_run_of_a_module_can_end_it_when_it_is_recorded(tmp_path):
    (tmp_path / "training.py").write_text(SCRIPT)
    folder = tmp_path / "scope"
    done = subprocess.run(
        [sys.executable, "-m", "cule.scope", "run", "--out", str(folder), "--iterations", "0:3",
         "--finish", "--", "-m", "training"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "sum" not in done.stdout
    assert Recording(folder).processes[0].process.iterations == 3


def test_report_shows_writes_and_draws(recorded, tmp_path, capsys):
    folder, _ = recorded
    plot, trace, rows = tmp_path / "bars.svg", tmp_path / "trace.json", tmp_path / "rows.jsonl"
    words = ["report", folder, "--plot", plot, "--perfetto", trace, "--results", rows]
    assert program.main(list(map(str, words))) == 0
    printed = capsys.readouterr().out
    assert "10 iterations of" in printed
    assert "Python to backend" in printed
    assert "<svg" in plot.read_text()
    events = json.loads(trace.read_text())["traceEvents"]
    assert {"add", "sleep", "ProfilerStep#3", "aten::add_"} <= {event["name"] for event in events}
    row = json.loads(rows.read_text())
    assert (row["system"], row["mode"], row["iterations"]) == ("cule.scope", "profile", 10)
    total = sum(one["milliseconds"] for one in row["operations"].values())
    assert total == pytest.approx(row["iteration_milliseconds"], abs=1e-3)


def test_report_prints_rows_as_json(recorded, capsys):
    folder, _ = recorded
    assert program.main(["report", str(folder), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    seconds = sum(row["seconds"] for row in rows if row["table"] == "breakdown")
    (about,) = [row for row in rows if row["table"] == "process"]
    assert seconds == pytest.approx(about["seconds"], rel=1e-6)


def test_report_without_the_book_keeping(recorded, tmp_path, capsys):
    folder, _ = recorded
    costs = Costs(annotation=2_000, operator=1_000)
    costs.write(tmp_path / "costs.json")
    words = ["report", str(folder), "--calibration", str(tmp_path / "costs.json")]
    assert program.main(words) == 0
    assert "of book-keeping were taken out" in capsys.readouterr().out
    plain, corrected = Recording(folder), Recording(folder, costs)
    taken = plain.processes[0].seconds - corrected.processes[0].seconds
    # 20 additions of five operators each, and 3 annotations, in each of 10 iterations.
    assert taken == pytest.approx(10 * (100 * 1e-6 + 3 * 2e-6), rel=0.1)


def test_compare_shows_two_recordings(recorded, capsys):
    folder, _ = recorded
    assert program.main(["compare", str(folder), str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[-1] == "1.00"


def test_calibrate_without_a_command_measures_loops(tmp_path, capsys):
    path = tmp_path / "new" / "costs.json"
    assert program.main(["calibrate", "--out", str(path)]) == 0
    costs = Costs.read(path)
    assert costs.annotation > 0
    assert costs.boundary > 0
    assert costs.operator > 0
    assert costs.about["device_name"]


@pytest.mark.slow
def test_check_says_how_near_the_corrected_time_is(tmp_path, capsys):
    rows, script = tmp_path / "rows.jsonl", tmp_path / "train.py"
    script.write_text(SCRIPT)
    words = ["check", "--iterations", "10:20", "--turns", "2", "--results", str(rows), "--"]
    assert program.main([*words, str(script)]) in (0, 1)
    assert "the bias" in capsys.readouterr().out
    row = json.loads(rows.read_text())
    assert len(row["uninstrumented_milliseconds"]) == len(row["corrected_milliseconds"]) == 2
    asleep = row["operations"]["sleep"]["uninstrumented_milliseconds"]
    assert len(asleep) == 2 and min(asleep) >= 1


def test_check_of_a_command_that_fails_is_a_sentence(script, capsys):
    words = ["check", "--turns", "1", "--calibration", "x", "--", str(script)]
    assert program.main(words) == 2
    assert "expected a file of 'cule.scope calibrate'" in capsys.readouterr().err
    with pytest.raises(
        RuntimeError, match=r"expected .*nothing.py to end well, got: .*script that"
    ):
        check.check(Program(["nothing.py"], (0, 2)), 1, Costs(), lambda text: None)


def test_bias_is_that_of_the_median_turn():
    """The machine becomes slower all the time, which makes no difference."""
    bias = check.Bias([10.0, 20.0, 40.0], [20.0, 38.0, 84.0], [11.0, 22.0, 39.0], 0.01)
    assert bias.inflation == pytest.approx(1.0)
    assert bias.bias == pytest.approx(0.1)
    row = check.row_of(bias, Program(["-m", "train"], (2, 4)))
    assert row["command"] == "python -m cule.scope check --iterations 2:4 -- -m train"
    assert row["bias_interval"] == pytest.approx([-0.025, 0.1])
    assert "+10.0%, the bias (-2.5 to +10.0)" in check.sentence(bias)


def test_times_of_operations_are_those_of_the_main_thread():
    millisecond = 1_000_000
    within = marks(
        (2 * millisecond, 9 * millisecond, "learn"), (4 * millisecond, 5 * millisecond, "log")
    )
    ends = [Mark(10 * millisecond, False, "iteration", "")] * 2
    found = check.times_of_operations(
        process(11 * millisecond, [*within, *ends], start=1 * millisecond), Costs()
    )
    # Of two iterations.
    assert found == {scope.UNATTRIBUTED: 1.5, "learn": 3.0, "log": 0.5}


def test_bias_of_each_operation_that_all_windows_have():
    bias = check.Bias([10.0] * 2, [14.0] * 2, [10.0] * 2)
    turns = [
        ({"act": 4.0, "learn": 6.0}, {"act": 7.0, "learn": 7.0}, {"act": 5.0, "learn": 5.0}),
        ({"act": 4.0, "learn": 6.0, "log": 1.0}, {"act": 7.0, "learn": 7.0},
         {"act": 5.0, "learn": 4.5}),
    ]  # fmt: skip
    check._add_operations(bias, turns)
    assert set(bias.operations) == {"act", "learn"}
    assert bias.operations["act"].bias == pytest.approx(0.25)
    assert bias.operations["learn"].corrected == [5.0, 4.5]
    first, second = check.sentence(bias).splitlines()[-2:]
    assert first.split()[:2] == ["learn", "6.000"] and "-20.8% (-25.0 to -16.7)" in first
    assert second.split()[:2] == ["act", "4.000"] and "+25.0%" in second
    columns = check.row_of(bias, Program(["-m", "train"], (2, 4)))["operations"]["act"]
    assert columns["instrumented_milliseconds"] == [7.0, 7.0]


@pytest.mark.parametrize(
    ("turns", "left_out"), [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (15, 3), (25, 7)]
)
def test_interval_is_that_of_the_sign_test(turns, left_out):
    """The ranks of 95% of the median, as tables of the sign test have them."""
    before = [1.0] * turns
    after = [2.0 + turn for turn in range(turns)]
    assert interval(before, after) == (1.0 + left_out, float(turns - left_out))


def annotated(cost):
    """A window with a hundred annotations that cost so many nanoseconds each."""
    length = 800_000 + 100 * cost
    each = length // 100
    spans = ((n * each + 2_000, n * each + 6_000, "a") for n in range(100))
    return process(length, marks(*spans))


def test_fit_finds_the_scale_at_which_the_corrected_time_is_right():
    """Annotations cost 2,000 ns each, where the loops said 1,000."""
    windows, plain = [annotated(2_000) for _ in range(3)], [0.8e-3] * 3
    scale = fit(windows, plain, Costs(annotation=1_000), "annotations")
    assert scale == pytest.approx(2, rel=0.01)
    assert scaled(Costs(annotation=1_000, operator=5), "annotations", 2) == Costs(2_000, 0, 5)
    assert fit(windows, plain, Costs(operator=1_000), "activities") == 1.0


def calling(cost, scatter):
    """A window: an operation of a hundred calls, each with this cost, then one that scatters."""
    each = 10_000 + cost
    begin, heavy = 100 * each, 20_000_000 + scatter
    calls = [
        Call(n * each + cost // 2, (n + 1) * each - cost // 2, "backend", "aten::add")
        for n in range(100)
    ]
    spans = ((0, begin, "calls"), (begin, begin + heavy, "scatters"))
    return process(begin + heavy + 1_000, marks(*spans), calls)


SCATTER = (0, 3_000_000, -2_500_000, 800_000, -1_200_000)


@pytest.mark.parametrize("cost", [0, 700, 2_000, 9_000])
def test_cost_is_found_by_the_operations_that_say_most_of_it(cost):
    """The loops said 1,000 ns. The other operation scatters by many times of all costs."""
    without = [calling(0, scatter) for scatter in SCATTER]
    with_calls = [calling(cost, scatter) for scatter in SCATTER[::-1]]
    for one in without:
        one.threads[one.main].calls.clear()
    scale = fit_operations(without, with_calls, Costs(operator=1_000), "activities")
    assert scale == (pytest.approx(cost / 1_000, rel=0.03) if cost else None)
    assert fit_operations(without, with_calls, Costs(annotation=1_000), "activities") is None


def test_operations_of_no_length_say_nothing_of_a_cost():
    empty = process(1_000, marks((10, 10, "nothing")))
    assert fit_operations([empty], [empty], Costs(operator=1_000), "activities") is None
    short = process(1_000, marks((10, 12, "short")), [Call(10, 12, "backend", "aten::add")])
    bare = process(1_000, marks((10, 10, "short")))
    fit_operations([bare] * 3, [short] * 3, Costs(operator=1_000), "activities")


def test_noise_is_that_of_the_changes_within_turns():
    """A machine that becomes slower from turn to turn is not noise."""
    before = [1.0, 2.0, 4.0, 8.0]
    assert noise(before, [1.5 * one for one in before]) == pytest.approx(0)
    assert noise(before, [1.1, 2.6, 4.4, 10.4]) == pytest.approx(2 * 0.1 / 2)


def windows_in_which(costs):
    """What `measure` gives where each annotation costs so many nanoseconds, and no other part."""

    def measured(program, kinds, turns, tell):
        for _ in range(turns):
            yield [annotated(costs if "annotations" in kind else 0) for kind in kinds]

    return measured


def test_calibration_scales_what_makes_a_difference(monkeypatch):
    """In a program where annotations cost twice what loops said, and boundaries nothing."""
    monkeypatch.setattr(calibration, "measure_loops", lambda: Costs(1_000, 300, 700))
    monkeypatch.setattr(calibration, "measure", windows_in_which(2_000))
    program = Program(["x.py"], (0, 1))
    costs = calibration.calibrate(program, 2, lambda text: None)
    assert costs.annotation == pytest.approx(2_000, rel=0.01)
    assert (costs.boundary, costs.operator) == (300, 700)
    assert costs.about["scales"].keys() == {"annotations"}


@pytest.mark.parametrize("together", [pytest.param(False, marks=pytest.mark.slow), True])
def test_windows_of_a_turn_have_their_instruments(tmp_path, together):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("range(30)", "range(90)"))
    kinds = [(), INSTRUMENTS[:1], INSTRUMENTS]
    told = []
    turns = list(measure(Program([str(script)], (5, 8), (), together), kinds, 2, told.append))
    assert len(turns) == 2 and len(told) == (1 if together else 6)
    for windows in turns:
        found = [sorted(one.about["instruments"]) for one in windows]
        assert found == [sorted(kind) for kind in kinds]
        calls = [[call.name for call in one.threads[one.main].calls] if one.threads else []
                 for one in windows]  # fmt: skip
        assert [names.count("aten::add_") for names in calls] == [0, 0, 60]
        assert all(3e-3 < 1e-9 * (one.end - one.start) < 3 for one in windows)


def test_calibrate_in_a_program_all_in_one_run(tmp_path, capsys):
    script, path = tmp_path / "train.py", tmp_path / "costs.json"
    script.write_text(SCRIPT.replace("range(30)", "range(200)"))
    words = ["calibrate", "--out", path, "--iterations", "5:8", "--repeats", "2", "--together"]
    assert program.main([*map(str, words), "--", str(script)]) == 0
    about = Costs.read(path).about
    assert about["together"] and len(about["seconds"]["none"]) == 2
    assert "operator" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "/nowhere"], "expected a folder with a recording"),
        (["run", "--out", "/tmp/x", "--iterations", "5:5", "--", "a.py"], "expected FIRST:END"),
        (["run", "--out", "/tmp/x", "--", "ls"], "expected a command after '--'"),
        (["run", "--out", "/tmp/x"], "expected a command after '--'"),
        (["run", "--out", "/dev/null/x", "--", "a.py"], "expected a folder that can be written"),
        (["run", "--out", "/tmp/x", "--boundary", "nope", "--", "a.py"], "expected --boundary to"),
        (["run", "--out", "/tmp/x", "--counters", "--", "a.py"], "expected --iterations with"),
        (
            ["check", "--calibration", "/nowhere", "--", "a.py"],
            "expected a file of 'cule.scope cal",
        ),
        (["calibrate", "--out", "/dev/null/x/y"], "Not a directory"),
        ([], "required: PROGRAM"),
    ],
)
def test_mistakes_are_sentences(capsys, words, message):
    try:
        status = program.main(words)
    except SystemExit as end:
        status = end.code
    assert status == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize("content", ["", "{}x", '{"annotation": -1}', '{"nonsense": 1}', "[]"])
def test_file_that_is_no_calibration_is_refused(tmp_path, content):
    path = tmp_path / "costs.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"expected a file of 'cule\.scope calibrate', got"):
        Costs.read(path)


def test_command_may_begin_with_python():
    assert program_of(["python3", "-m", "x", "--y"]) == ["-m", "x", "--y"]
    assert program_of(["train.py", "1"]) == ["train.py", "1"]
