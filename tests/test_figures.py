"""Every measured figure of the user's pages is computed again from rows of benchmarks/results."""

from __future__ import annotations

import collections
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.figures import modules, rewritten
from tests.figures.pages import problems
from tests.figures.results import RESULTS, ROOT, all_rows

MODULES = {module.PAGE: module for module in modules()}


def problems_of(module: ModuleType, text: str) -> list[str]:
    return problems(text, [*module.figures()], module.GIVEN)


@pytest.mark.parametrize("page", MODULES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_of_a_page_are_what_rows_say(page: Path) -> None:
    assert problems_of(MODULES[page], page.read_text()) == []


def test_rows_that_say_something_wrong_are_those_that_are_listed() -> None:
    rows = all_rows()
    wrong = [row for row in rows if row.get("overlap") and row.get("lag") == 0]
    without = [row for row in rows if row.get("command") is None]
    several = [row for row in rows if (row.get("num_gpus") or 1) > 1]
    trained = collections.Counter(
        (row["file"], row["commit"])
        for row in several
        if "torchrun" not in row.get("command", "torchrun")
    )
    text = (RESULTS / "README.md").read_text()
    assert f"{len(wrong)} rows of A2C with V-trace" in text
    assert f"**No `command`**: {len(without)} rows" in text
    assert f"{sum(row in without for row in several)} of them used several GPUs" in text
    assert f"{sum(trained.values())} trainings on several GPUs" in text
    for (file, commit), count in trained.items():
        assert f"| `{file}` | {commit} | {count} |" in text


@pytest.mark.parametrize("page", MODULES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_names_the_rows_of_its_figures(page: Path) -> None:
    written = rewritten(MODULES[page])
    assert page.read_text() == written, "run python -m tests.figures"


@pytest.mark.parametrize(
    ("true", "false", "found"),
    [
        ("| 3.62 |", "| 3.72 |", "no rows for 3.72"),
        ("observations included", "19 times as many as CuLE", "no rows for 19"),
        ("with one setting", "after forty seconds, with one setting", "no rows for forty seconds"),
        ("118 KB", "119 KB", "expected the page to say: An env of Pong takes 118 KB"),
        ("| `pong` |", "| `pong` | 1.5 |", "no rows for 1.5"),
    ],
)
def test_false_figure_is_found(true: str, false: str, found: str) -> None:
    module = MODULES[ROOT / "README.md"]
    text = module.PAGE.read_text()
    assert true in text
    planted = problems_of(module, text.replace(true, false, 1))
    assert any(problem.startswith(found) for problem in planted), planted


def test_commits_of_notes_have_rows_in_the_files_that_are_named() -> None:
    """The table of benchmarks/NOTES.md: a line names a file, by link or as its heading does, and
    commits; "log", "printed" and names of tests say that there are no rows."""
    text = (ROOT / "benchmarks" / "NOTES.md").read_text().split("## The state now")[1]
    link = r"\[(\w+(?: \w+)*)\]\(results/([\w-]+\.jsonl)\)"
    files, heading, wrong = dict(re.findall(link, text.partition("\n| what")[0])), [], []
    rows = {(row["file"], row["commit"][:7]) for row in all_rows()}
    table = [line for line in text.split("\n\n## ")[0].splitlines() if line.startswith("|")]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    assert len(lines) > 50
    for what, figure, origin in lines:
        named = [file for _, file in re.findall(link, origin)]
        files |= dict(re.findall(link, origin))
        words = re.findall(r"\w+", re.sub(link, "", origin))
        named += [files[word] for word in words if word in files]
        if not figure:
            heading = named
        if re.search(r"\b(?:log|printed|no rows)\b|\.py|^\s*$", origin):
            continue
        for commit in re.findall(r"\b[0-9a-f]{7}\b", origin):
            if not any((file, commit) in rows for file in [*named, *heading]):
                wrong.append(f"{what}: no rows of {commit} in {named} {heading}")
    assert wrong == []


def test_pages_without_declared_figures_name_no_times_or_speeds() -> None:
    """Pages that have no module here: other numbers in them are versions and settings."""
    found = []
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    measured = re.compile(r"^no rows for \S+ (?:in: .*?\d (?:ms|s|FPS|GB|KB|seconds|minutes)\b)")
    for page in set(pages) - set(MODULES):
        found += [f"{page.name}: {one}" for one in problems(page.read_text(), [], [])
                  if measured.match(one)]  # fmt: skip
    assert found == []
