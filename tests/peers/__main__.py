"""`python -m tests.peers`: see `--help`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.peers.expected import EXPECTED_FAILURES
from tests.peers.fetch import CannotFetchError, fetch
from tests.peers.stand_ins.peers_names import matches
from tests.peers.suites import SUITES, Suite

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = Path(__file__).with_name("stand_ins")


@dataclass
class Outcome:
    """The outcomes of a suite's tests."""

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def read_results(path: Path) -> Outcome:
    """Reads what the recorder noted."""
    outcome = Outcome()
    for line in path.read_text().splitlines() if path.exists() else []:
        row = json.loads(line)
        if "left_out" in row:
            outcome.left_out |= set(row["left_out"])
        elif "broken" in row:
            outcome.problems.append(f"{row['broken']} could not be imported:\n{row['text']}")
        elif row["outcome"] == "failed":
            outcome.failed[row["test"]] = row["last_line"]
        elif row["outcome"] == "skipped":
            outcome.skipped.add(row["test"])
        else:
            outcome.passed.add(row["test"])
    outcome.passed -= set(outcome.failed)
    return outcome


def run(suite: Suite, folder: Path, arguments: list[str]) -> Outcome:
    """Runs the suite's tests with cule in place of the peer."""
    results = folder / "results.jsonl"
    config = {"results": str(results), "left_out": list(suite.left_out)}
    paths = (STAND_INS, ROOT, *filter(None, [os.environ.get("PYTHONPATH")]))
    environment = os.environ | {
        "CULE_PEERS": json.dumps(config),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }
    settings = folder / "peers.ini"
    settings.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-c", settings.name, "--rootdir=.", "-q"]
    command += ["-p", "recorder", "-p", suite.stand_in, "-p", "no:cacheprovider"]
    command += ["-W", "ignore", "--tb=short", *arguments, *suite.files]
    log = folder / "log.txt"
    with log.open("w") as file:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT, check=False
        )
    outcome = read_results(results)
    if done.returncode not in (0, 1) and not outcome.problems:
        last = "\n".join(log.read_text().splitlines()[-5:])
        outcome.problems.append(f"pytest ended with {done.returncode}:\n{last}")
    return outcome


def surprises(suite: Suite, outcome: Outcome) -> list[str]:
    """Differences from `expected`: failures that are not listed, and listed ones that pass."""
    listed = EXPECTED_FAILURES.get(suite.name, {})
    found = list(outcome.problems)
    for test, line in sorted(outcome.failed.items()):
        if not any(matches(test, name) for name in listed):
            found.append(f"{test} failed, and is not listed: {line}")
    tests = outcome.passed | set(outcome.failed) | outcome.skipped
    for name in listed:
        named = [test for test in tests if matches(test, name)]
        if not named:
            found.append(f"{name} is listed, but there is no such test")
        found += [f"{test} is listed, and passes" for test in named if test in outcome.passed]
    return found


def main() -> int:
    """Runs the suites and prints a table. Returns 0 if everything is as expected."""
    names = [suite.name for suite in SUITES]
    parser = argparse.ArgumentParser(
        prog="python -m tests.peers",
        description="Fetches other libraries' own tests of their Atari envs, vector envs and "
        "wrappers at pinned tags, runs them with cule in the place of theirs, and compares "
        "what fails with tests/peers/expected.py.",
        epilog="What the tests need: pip install -r tests/peers/requirements.txt",
    )
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=f"{', '.join(names)}; all of them"
    )
    parser.add_argument("--mirror", type=Path, help="a folder of clones, instead of GitHub")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "peers", help="where files go"
    )
    parser.add_argument("--pytest", default="", help="further arguments of pytest, in one string")
    options = parser.parse_args()
    unknown = sorted(set(options.suites) - set(names))
    if unknown:
        parser.error(f"expected suites of {', '.join(names)}, got {unknown[0]!r}")
    rows, problems = [], []
    for suite in SUITES:
        if options.suites and suite.name not in options.suites:
            continue
        missing = [name for name in suite.needs if importlib.util.find_spec(name) is None]
        if missing:
            problems.append(
                f"{suite.name}: needs {', '.join(missing)}: pip install -r "
                "tests/peers/requirements.txt"
            )
            continue
        try:
            folder, commit = fetch(suite, options.work.resolve(), options.mirror)
        except CannotFetchError as problem:
            problems.append(f"{suite.name}: {problem}")
            continue
        outcome = run(suite, folder, shlex.split(options.pytest))
        problems += [f"{suite.name}: {one}" for one in surprises(suite, outcome)]
        apply = len(outcome.passed) + len(outcome.failed)
        counted = (outcome.passed, outcome.failed, outcome.skipped, outcome.left_out)
        source = f"{suite.repository} {suite.tag} ({commit[:9]})"
        rows.append((suite.name, source, apply, *map(len, counted)))
        print(f"{suite.name}: {len(outcome.passed)} of {apply} passed", file=sys.stderr)
    head = ("suite", "from", "apply", "passed", "failed", "skipped", "left out")
    print("| " + " | ".join(head) + " |\n|---|---|---:|---:|---:|---:|---:|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    for problem in problems:
        print(f"\n{problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
