"""`python -m cule.scope start`: a program that starts slowly, in known ways."""

from __future__ import annotations

import io
import itertools
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from cule.scope.__main__ import main
from cule.scope.events import UNATTRIBUTED
from cule.scope.recording import Recording
from cule.scope.start import BEFORE, ITERATION, Stage, _pass_on, plot, run, table

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json, pathlib, sys, time
from collections import Counter
sys.stderr.write("it begins\\n")
import slowly_imported_package.inner
from cule import scope

spent = Counter()

def work(name, seconds):
    with scope.operation(name):
        begun = time.perf_counter()
        time.sleep(seconds)
        spent[name] += time.perf_counter() - begun

work("load", 0.2)
time.sleep(0.1)
work("compile", 0.1)
work("load", 0.1)
while len(sys.argv) < 2:
    with scope.iteration():
        work("learn", 0.15)
        pathlib.Path(__file__).with_name("own.json").write_text(json.dumps(spent))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    package = folder / "slowly_imported_package"
    package.mkdir()
    (package / "__init__.py").write_text("import time; time.sleep(0.2)\n")
    (package / "inner.py").write_text("import time; time.sleep(0.3)\n")
    path = folder / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def started(script, tmp_path_factory):
    """How it started, and the folder of the recording."""
    folder = tmp_path_factory.mktemp("started") / "scope"
    return run([str(script)], [], folder), folder


def test_stages_are_all_of_the_time_in_the_order_of_their_begins(started):
    found, _ = started
    names = [one.name for one in found.stages]
    assert names == [BEFORE, UNATTRIBUTED, "load", "compile", ITERATION]
    assert found.reached and found.problems == []
    spans = sorted(span for one in found.stages for span in one.spans)
    assert spans[0][0] == 0 and spans[-1][1] == pytest.approx(found.seconds)
    for (_, end), (begin, _) in itertools.pairwise(spans):
        assert begin == pytest.approx(end, abs=1e-6)


def test_stages_take_as_long_as_the_program_says(started, script):
    seconds = {one.name: one.seconds for one in started[0].stages}
    own = json.loads(script.with_name("own.json").read_text())
    for name in ("load", "compile"):
        assert seconds[name] == pytest.approx(own[name], rel=0.02, abs=2e-3)
    assert seconds[ITERATION] >= own["learn"]
    assert seconds[UNATTRIBUTED] >= 0.6, "the imports and the sleep"
    assert seconds[BEFORE] > 0.3


def test_imports_are_counted_by_package(started):
    found, _ = started
    assert found.imports["slowly_imported_package"] >= 0.5
    assert found.imports["torch"] > 0.1
    assert list(found.imports.values()) == sorted(found.imports.values(), reverse=True)


def test_recording_of_it_can_be_reported(started):
    rows = Recording(started[1]).breakdown()
    assert {row.operation for row in rows} == {"load", "compile", "learn", UNATTRIBUTED}


def test_table_and_picture(started, tmp_path):
    text = table(started[0])
    assert text.startswith(f"{started[0].seconds:.3f} s from the command to the end of the first")
    assert "\nload " in text and "\nslowly_imported_package " in text
    plot(started[0], tmp_path / "start.svg")
    assert "compile" in (tmp_path / "start.svg").read_text()
    with pytest.raises(ValueError, match="expected --plot to name a file that ends in one of"):
        plot(started[0], tmp_path / "start.txt")


def test_command_prints_the_table_and_what_the_program_says(script, tmp_path):
    words = ["-m", "cule.scope", "start", "--plot", tmp_path / "start.png", "--", script]
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2].split() == ["stage", "from", "seconds", "share"]
    assert "it begins\n" in done.stderr
    assert "import time:" not in done.stderr
    assert (tmp_path / "start.png").stat().st_size > 1000


def test_a_program_without_iterations_is_shown_whole(script, capfd):
    assert main(["start", "--", str(script), "none"]) == 0
    printed = capfd.readouterr().out
    assert "s from the command to the program's end:" in printed
    assert "Note: the program marks no iteration" in printed


def test_a_program_that_fails_keeps_its_traceback(tmp_path, capfd):
    path = tmp_path / "fails.py"
    path.write_text("def main():\n    raise KeyError('mine')\n\nmain()\n")
    assert main(["start", "--", str(path)]) == 2
    said = capfd.readouterr().err
    assert "fails.py\", line 2, in main\n    raise KeyError('mine')" in said
    assert said.endswith("gets to its first iteration, got status 1\n")
    assert main(["start", "--plot", str(tmp_path / "no folder" / "a.png"), "--", str(path)]) == 2
    said = capfd.readouterr().err
    assert "expected --plot to name a file" in said and "KeyError" not in said


def test_lines_that_python_writes_are_told_from_the_programs(capsys):
    lines = io.StringIO(
        "import time: self [us] | cumulative | imported package\n"
        "import time:      1000 |       3000 | a\n"
        "import time:      2000 |       2000 |   a.b\n"
        "an import time: of mine\nlast"
    )
    imports = defaultdict(float)
    _pass_on(lines, imports)
    assert imports == {"a": pytest.approx(0.003)}
    assert capsys.readouterr().err == "an import time: of mine\nlast"


def test_seconds_of_a_stage_that_comes_twice():
    assert Stage("load", ((1.0, 2.0), (3.0, 3.5))).seconds == 1.5


def test_stages_of_a_training(tmp_path):
    words = [
        "-m", "examples.pqn.pqn", "--game", "pong", "--device", "cpu", "--num-envs", "20",
        "--width", "0.1", "--num-steps", "4", "--minibatch-size", "80", "--eval-episodes", "1",
        "--folder", str(tmp_path / "run"), "--no-plot", "--no-progress",
    ]  # fmt: skip
    names = [one.name for one in run(words, [], None).stages]
    wanted = ["make envs", "make networks", "plan", "first reset", "warm up"]
    assert [name for name in names if name in wanted] == wanted
    assert "make envs for evaluations" in names and names[-1] == ITERATION
