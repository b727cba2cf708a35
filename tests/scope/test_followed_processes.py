"""Processes that a recorded program starts are in its report."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import gymnasium
import pytest
import torch
from torch.utils.data import DataLoader

from cule import scope
from cule.scope.children import in_order
from cule.scope.events import Process
from cule.scope.following import VARIABLE
from cule.scope.imports import ImportHook
from cule.scope.recording import Recording
from cule.scope.rows import json_rows
from cule.scope.table import processes_table, report
from tests.scope.planted import cells_of_iterations, check_cells
from tests.support.waiting import repeat_until, wait_for

ROOT = Path(__file__).resolve().parents[2]
FORK = multiprocessing.get_context("fork")


def recorded_fleet(folder: Path, *words: str) -> tuple[Recording, str]:
    """The recording of tests.scope.fleet, and what it printed. Its ledgers are in `folder`/own."""
    (folder / "own").mkdir()
    command = [
        sys.executable, "-m", "cule.scope", "run", "--out", str(folder / "scope"),
        "--boundary", "tests.scope.planted_simulator", "--",
        "-m", "tests.scope.fleet", str(folder / "own"), *words,
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr
    return Recording(folder / "scope"), done.stdout


def kinds(recording: Recording) -> Counter[str]:
    """How many processes there are of each kind, by their names without numbers."""
    return Counter(one.process.name.split("-")[0] for one in recording.processes)


def test_every_process_is_in_the_report(tmp_path):
    recording, printed = recorded_fleet(
        tmp_path, "--fork", "2", "--spawn", "1", "--forkserver", "1", "--pool", "3",
        "--os-fork", "1", "--python", "json", "ale_py",
    )  # fmt: skip
    assert recording.problems == []
    assert kinds(recording) == {
        "main": 2, "ForkProcess": 2, "SpawnProcess": 1, "ForkServerProcess": 1, "ForkPoolWorker": 3,
        "python": 2,
    }  # fmt: skip
    assert [one.process.parent for one in recording.processes] == [None] + 10 * ["main"]
    by_pid = {one.process.about["pid"]: one for one in recording.processes}
    ledgers = {int(path.stem) for path in (tmp_path / "own").glob("*.jsonl")}
    assert len(ledgers) == 2 + 1 + 1 + 3 + 1
    for pid in ledgers:
        name = by_pid[pid].process.name
        found = {(row.operation, row.level) for row in recording.breakdown() if row.process == name}
        levels = ("python", "simulator", "backend")
        assert found >= {("expand", level) for level in levels} | {("learn", "backend")}
    for pid in map(int, (line for line in printed.splitlines() if line.isdecimal())):
        assert by_pid[pid].process.name == f"python-{pid}"
    table = processes_table(recording).splitlines()
    assert len(table) == 1 + 11
    assert table[1].startswith("main ") and all(line.startswith("  ") for line in table[2:])
    assert table[0].split()[-1] == "waiting"
    # main does nothing but wait.
    main = recording.processes[0]
    waited = sum(row.seconds for row in recording.breakdown()
                 if (row.process, row.level) == ("main", "waiting"))  # fmt: skip
    assert 0.5 * main.seconds < waited < main.seconds
    rows = {row["process"]: row for row in json_rows(recording) if row["table"] == "process"}
    assert rows["SpawnProcess-3"]["parent"] == "main"


@pytest.mark.slow
def test_each_cell_of_each_process_is_found_within_two_percent(tmp_path):
    """On an idle machine: 4 forks, 4 spawned processes and a Pool of 16."""
    recording, _ = recorded_fleet(
        tmp_path, "--fork", "4", "--spawn", "4", "--pool", "16", "--iterations", "7"
    )
    assert recording.problems == []
    assert kinds(recording)["ForkPoolWorker"] == 16
    by_pid = {one.process.about["pid"]: one for one in recording.processes}
    compared = 0
    for path in (tmp_path / "own").glob("*.jsonl"):
        ledgers = [json.loads(line) for line in path.read_text().splitlines()]
        found = cells_of_iterations(by_pid[int(path.stem)])
        assert len(found) == len(ledgers)
        planted = [
            {tuple(cell.rsplit(" ", 1)): spent for cell, spent in ledger.items()}
            for ledger in ledgers
        ]
        compared += check_cells(found, planted)
    assert compared == 8 * len(list((tmp_path / "own").glob("*.jsonl")))


SHORT_LIVED = """
import multiprocessing, sys, time, torch
from cule import scope

if __name__ == "__main__":
    # Its workers end after each task, and a thread of the Pool forks new ones.
    with multiprocessing.get_context("fork").Pool(3, maxtasksperchild=1) as pool:
        for number in range(10):
            result = pool.map_async(abs, range(12), chunksize=1)
            with scope.record(sys.argv[1], overwrite=True):
                torch.ones(10).sum()
                time.sleep(0.01 * (number % 5))
            assert result.get(60) == list(range(12))
"""


def test_workers_that_are_forked_while_recordings_begin_and_end_do_not_hang(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SHORT_LIVED)
    words = [sys.executable, "-W", "ignore", str(program), str(tmp_path / "scope")]
    process = subprocess.Popen(words, cwd=ROOT, start_new_session=True)
    try:
        assert process.wait(120) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def squared(number: int) -> int:
    with scope.operation("square"):
        return number**2


def tensors(number: int) -> torch.Tensor:
    with scope.operation("load"):
        return torch.ones(3) * number


def test_workers_of_libraries_are_in_the_report(tmp_path):
    with scope.record(tmp_path) as recording:
        with scope.operation("executor"), ProcessPoolExecutor(2, mp_context=FORK) as pool:
            assert list(pool.map(squared, range(4))) == [0, 1, 4, 9]
        with scope.operation("data"):
            data = [0, 1, 2, 3]
            loader = DataLoader(
                data, num_workers=2, collate_fn=lambda some: tensors(some[0]),
                multiprocessing_context=FORK,
            )  # fmt: skip
            assert [batch[0].item() for batch in loader] == [0, 1, 2, 3]
        with scope.operation("envs"):
            envs = gymnasium.make_vec(
                "CartPole-v1", 2, vectorization_mode="async", vector_kwargs={"context": "fork"}
            )
            envs.reset(seed=0)
            for _ in range(5):
                envs.step(envs.action_space.sample())
            envs.close()
    assert recording.problems == []
    assert len(recording.processes) == 1 + 2 + 2 + 2
    found = {(row.process == "main", row.operation) for row in recording.breakdown()}
    assert found >= {(False, "square"), (False, "load"), (True, "executor"), (True, "envs")}
    waited = {row.operation for row in recording.breakdown()
              if (row.process, row.level) == ("main", "waiting") and row.seconds}  # fmt: skip
    assert waited >= {"executor", "data", "envs"}
    assert "ForkPoolWorker" not in report(recording, [], [])


def test_workers_end_their_recordings_with_the_window_and_live_on(tmp_path):
    """Also those that were there before it, and are not recorded until it begins."""
    with FORK.Pool(1) as older:
        older.map(abs, [1])
        with scope.record(tmp_path / "none"), FORK.Pool(2) as pool:
            pool.map(squared, [1])
        with scope.record(tmp_path, iterations=(3, 5)) as recording, FORK.Pool(2) as pool:
            in_window = 0
            for number in range(8):
                # In the window until both workers have recorded, after it until they have ended.
                files = {4: "*.marks.jsonl", 5: "*.gz"}.get(number, "*")

                def done(files=files):
                    return files == "*" or len(list(tmp_path.glob(files))) == 3

                with scope.iteration():
                    for _ in repeat_until(done):
                        assert pool.map(squared, [number] * 4) == [number**2] * 4
                        in_window += 4 * (number in (3, 4))
            # The pool is older than the window, and still works.
            assert recording.complete and pool.map(squared, [7]) == [49]
        workers = recording.processes[1:]
        assert len(workers) == 2
        assert all(one.process.about["state"] == "complete" for one in workers)
        calls = sum(row.calls for row in recording.breakdown() if row.operation == "square")
        assert 2 <= calls <= in_window
        # One that was there before anything was recorded is a sentence.
        (problem,) = recording.problems
        assert "got none of ForkPoolWorker-" in problem


def test_killed_worker_leaves_its_annotations_and_a_sentence(tmp_path):
    def forever():
        while True:
            with scope.operation("loop"):
                time.sleep(0.01)

    with scope.record(tmp_path) as recording:
        worker = FORK.Process(target=forever)
        worker.start()
        marks = tmp_path / f"main.{worker.pid}.marks.jsonl"
        wait_for(lambda: marks.exists() and marks.read_bytes().endswith(b"\n"))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join(60)
    (problem,) = recording.problems
    assert "was cut off" in problem
    assert "loop" in {row.operation for row in recording.breakdown()}


def close_everything() -> None:
    os.closerange(3, 256)


def test_processes_that_do_strange_things_go_on(tmp_path):
    """Their files are closed, they become another program, are forked by a thread, or end badly."""

    def in_thread():
        statuses.append(wait_for(lambda: squared(2)))

    def wait_for(function):
        if (child := os.fork()) == 0:
            function()
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    statuses: list[int] = []
    with scope.record(tmp_path) as recording:
        worker = FORK.Process(target=close_everything)
        worker.start()
        worker.join(60)
        program = [sys.executable, "-c", "import torch; raise SystemExit(5)"]
        assert wait_for(lambda: os.execv(program[0], program)) == 5
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join(60)
        assert (
            subprocess.run([sys.executable, "-c", "1 / 0"], stderr=-3, check=False).returncode == 1
        )
    assert worker.exitcode == 0
    assert statuses == [7]
    assert recording.problems == []
    assert len(recording.processes) == 1 + 4
    assert "square" in {row.operation for row in recording.breakdown()}


def test_folder_that_is_gone_stops_no_program(tmp_path):
    with pytest.warns(UserWarning, match="expected to"), scope.record(tmp_path / "a", iterations=2):
        for number in range(6):
            if number == 1:
                shutil.rmtree(tmp_path / "a")
            with scope.iteration():
                worker = FORK.Process(target=squared, args=(3,))
                worker.start()
                worker.join(60)
                assert worker.exitcode == 0


def test_children_can_be_left_out(tmp_path):
    with scope.record(tmp_path, children=False) as recording:
        worker = FORK.Process(target=squared, args=(3,))
        worker.start()
        worker.join(60)
        assert VARIABLE not in os.environ
    assert len(recording.processes) == 1
    assert len(recording.problems) == 1


def test_order_of_processes_whose_files_say_that_they_started_each_other():
    def process(name, start, parent):
        return Process(name, start, start + 1, 0, parent=parent)

    some = [
        process("c", 5, "main"), process("b", 2, "main"), process("main", 0, None),
        process("d", 3, "b"), process("x", 1, "y"), process("y", 1, "x"), process("z", 1, "z"),
    ]  # fmt: skip
    found = in_order(some)
    assert [one.name for one in found] == ["main", "b", "d", "c", "x", "y", "z"]
    assert [one.parent for one in found] == [None, "main", "b", "main", None, "x", None]
    chain = [process(f"{n}", n, f"{n - 1}" if n else None) for n in range(3000)]
    assert in_order(chain[::-1]) == chain


FORKING = """
import multiprocessing, os, sys

def with_torch():
    import torch
    from cule import scope
    with scope.operation("in the fork"):
        torch.ones(10).sum()

def without():
    pass

def again():
    if (child := os.fork()) == 0:
        with_torch()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

for function in (with_torch, without, again):
    fork = multiprocessing.get_context("fork").Process(target=function)
    fork.start()
    fork.join()
    assert fork.exitcode == 0
assert "torch" not in sys.modules
"""


def test_forks_of_a_python_that_never_imports_torch(tmp_path):
    with scope.record(tmp_path) as recording:
        subprocess.run([sys.executable, "-c", FORKING], check=True)
    assert recording.problems == []
    assert len(recording.processes) == 1 + 1 + 3 + 1
    assert all(one.process.about["state"] == "complete" for one in recording.processes)
    found = {row.process for row in recording.breakdown() if row.operation == "in the fork"}
    assert len(found) == 2
    parents = Counter(one.process.parent for one in recording.processes)
    python = recording.processes[1].process.name
    assert parents[python] == 3


def test_environment_is_as_before(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    with scope.record(tmp_path):
        assert os.environ["PYTHONPATH"].endswith(os.pathsep + "/somewhere")
        assert VARIABLE in os.environ
    assert os.environ["PYTHONPATH"] == "/somewhere"
    assert VARIABLE not in os.environ


def test_other_sitecustomize_is_imported_and_the_path_is_the_programs(tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.own_was_here = True\n")
    monkeypatch.setenv("PYTHONPATH", str(own))
    code = "import sys, sitecustomize; print(sys.own_was_here, sitecustomize.__file__, sys.path)"
    with scope.record(tmp_path / "scope") as recording:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    assert done.stdout.startswith(f"True {own / 'sitecustomize.py'} ")
    assert "startup" not in done.stdout
    assert len(recording.processes) == 2


def test_overwriting_deletes_the_children_of_the_older_recording(tmp_path):
    for count in (2, 1):
        with scope.record(tmp_path, overwrite=True) as recording:
            workers = [FORK.Process(target=squared, args=(3,)) for _ in range(count)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(60)
        assert len(recording.processes) == 1 + count


def test_import_hook_tells_of_modules_once_they_are_complete(tmp_path, monkeypatch):
    package = tmp_path / "hooked_package"
    package.mkdir()
    (package / "__init__.py").write_text("import hooked_package.inner\ndone = True\n")
    (package / "inner.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    told = []
    hook = ImportHook({"hooked_package"}, lambda name, inside: told.append((name, inside)))
    hook.install()
    try:
        import hooked_package

        assert hooked_package.done and hooked_package.inner.value == 3
        with pytest.raises(ModuleNotFoundError, match=r"hooked_package\.missing"):
            import hooked_package.missing
    finally:
        hook.uninstall()
        hook.uninstall()
    assert told == [("hooked_package.inner", True), ("hooked_package", False)]
