"""cule with other libraries: the scripts of examples/with, where the libraries are installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import conformance
from benchmarks.libraries import LIBRARIES, MODULES, Library
from benchmarks.peers.systems import PACKAGES

SMALL = ["--num-envs", "2", "--steps", "64", "--patience", "300"]
SCRIPTED = [library for library in LIBRARIES if library.script is not None]


PARAMETERS = [
    pytest.param(library, marks=pytest.mark.slow if library.slow else (), id=library.name)
    for library in SCRIPTED
]


@pytest.mark.parametrize("library", PARAMETERS)
def test_a_library_plays_with_cule(library: Library) -> None:
    if not conformance.is_here(library, None):
        pytest.skip(f"needs {library.name}")
    row = conformance.result_of(library, conformance.parsed(SMALL))
    assert row.get("problem") is None and row["fps"] > 0


@pytest.mark.gpu
@pytest.mark.parametrize("library", PARAMETERS)
def test_a_library_plays_with_cule_on_a_gpu(library: Library) -> None:
    if not conformance.is_here(library, None):
        pytest.skip(f"needs {library.name}")
    row = conformance.result_of(library, conformance.parsed([*SMALL, "--device", "cuda"]))
    assert row.get("problem") is None and row["fps"] > 0


def test_each_script_is_in_the_list_once() -> None:
    scripts = {path.name for path in conformance.SCRIPTS.glob("with_*.py")}
    assert sorted(scripts) == sorted(str(library.script) for library in SCRIPTED)
    assert len(MODULES) == len(LIBRARIES)
    # Whose training is measured beside cule's is in the same list.
    assert {*PACKAGES.items()} < {*MODULES.items()}


SCRIPTS = {
    "said.py": "print('a line')\nprint('thing 1.2: 3,456 frames a second, 2 envs, cpu')",
    "silent.py": "pass",
    "failing.py": "1 / 0",
    "waiting.py": "import subprocess, sys\n"
    "subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])",
}


@pytest.mark.parametrize("script, wanted", [
    ("said.py", 3456.0),
    ("silent.py", "it says no frames a second"),
    ("failing.py", "exit status 1: ZeroDivisionError: division by zero"),
    ("waiting.py", "it takes longer than 1 s"),
])  # fmt: skip
def test_a_row_has_the_speed_or_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    script: str, wanted: float | str,
) -> None:  # fmt: skip
    (tmp_path / script).write_text(SCRIPTS[script])
    ours = (Library("thing", "numpy", "all", script), Library("other", "nowhere", "all", script),
            Library("never", "numpy", "no: it is round"))  # fmt: skip
    monkeypatch.setattr(conformance, "SCRIPTS", tmp_path)
    monkeypatch.setattr(conformance, "LIBRARIES", ours)
    results = tmp_path / "rows.jsonl"
    status = conformance.main([*SMALL[:4], "--patience", "1" if script == "waiting.py" else "60",
                               "--results", str(results)])  # fmt: skip
    (row,) = map(json.loads, results.read_text().splitlines())
    assert (row["system"], row["mode"], row["num_envs"]) == ("thing", "conformance", 2)
    assert row.get("fps", row.get("problem")) == wanted and status == isinstance(wanted, str)
    told = capsys.readouterr().out
    assert "other                not installed\n" in told
    assert "never                no: it is round\n" in told
