"""Recordings in several folders, as several machines without a shared one have them, as one."""

from __future__ import annotations

import json
import multiprocessing

import pytest

from cule import scope
from cule.scope.__main__ import main
from cule.scope.recording import Recording
from cule.scope.storage import about_path, names_in


def work():
    with scope.operation("child"):
        sum(range(10_000))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two recordings of a process that forks another one."""
    found = [tmp_path_factory.mktemp(name) for name in ("left", "right")]
    for number, folder in enumerate(found):
        with scope.record(folder), scope.operation(f"work {number}"):
            child = multiprocessing.get_context("fork").Process(
                target=work, name=f"helper-{number}"
            )
            child.start()
            child.join()
    return found


@pytest.fixture
def on_two_machines(folders):
    """The same as if the second one were another machine's, whose processes have the same pids."""
    pids = [
        sorted(json.loads(about_path(folder, name).read_text())["pid"] for name in names_in(folder))
        for folder in folders
    ]
    others = dict(zip(pids[1], pids[0], strict=True))
    changed = {}
    for name in names_in(folders[1]):
        path = about_path(folders[1], name)
        changed[path] = content = path.read_text()
        about = json.loads(content) | {"host": "other"}
        about["pid"] = others.get(about["pid"], about["pid"])
        about["parent"] = others.get(about["parent"], about["parent"])
        about["children"] = {others[int(pid)]: name for pid, name in about["children"].items()}
        path.write_text(json.dumps(about))
    yield folders
    for path, content in changed.items():
        path.write_text(content)


def test_processes_of_all_folders_are_in_one_recording(on_two_machines):
    recording = Recording(on_two_machines)
    own = json.loads(about_path(on_two_machines[0], "main").read_text())["host"]
    parents = {one.process.name: one.process.parent for one in recording.processes}
    assert parents == {
        f"main@{own}": None, "helper-0": f"main@{own}",
        "main@other": None, "helper-1": "main@other",
    }  # fmt: skip
    assert recording.problems == []
    operations = {(row.process, row.operation) for row in recording.breakdown()}
    assert operations >= {
        (f"main@{own}", "work 0"), ("main@other", "work 1"), ("helper-1", "child")
    }  # fmt: skip


def test_folders_tell_processes_of_one_machine_apart(folders):
    names = {one.process.name for one in Recording(folders).processes}
    assert names == {"main@1", "main@2", "helper-0", "helper-1"}
    assert {one.process.name for one in Recording(folders[0]).processes} == {"main", "helper-0"}


def test_one_report_has_them_all(on_two_machines, tmp_path, capsys):
    words = ["report", *map(str, on_two_machines), "--merge"]
    trace = tmp_path / "trace.json"
    assert main([*words, "--perfetto", str(trace)]) == 0
    lines = capsys.readouterr().out.splitlines()
    tree = lines[1 : lines.index("")]
    assert [line.split("  ")[0] or line.split()[0] for line in tree][2] == "main@other"
    assert len(tree) == 4 and tree[3].startswith("  helper-1")
    assert len(list(tmp_path.iterdir())) == 4  # a trace for each
    assert main([*words[:-1]]) == 0
    reports = capsys.readouterr().out
    assert all(str(folder) in reports for folder in on_two_machines) and "@other" not in reports


def test_traces_of_several_recordings_would_overwrite_each_other(folders, tmp_path, capsys):
    words = ["report", *map(str, folders), "--perfetto", str(tmp_path / "trace.json")]
    assert main(words) == 2
    assert "expected one folder, or --merge, with --perfetto, got 2" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
