"""Every measured figure of the user's pages is computed again from rows of benchmarks/results."""

from __future__ import annotations

import collections
import functools
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.figures import modules, rewritten
from tests.figures.pages import Said, problems
from tests.figures.results import RESULTS, ROOT, all_rows

MODULES = {module.PAGE: module for module in modules()}


@functools.cache
def figures_of(page: Path) -> list[Said]:
    return [*MODULES[page].figures()]


def problems_of(module: ModuleType, text: str) -> list[str]:
    return problems(text, figures_of(module.PAGE), module.GIVEN, module.NUMBERS)


@pytest.mark.parametrize("page", MODULES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_of_a_page_are_what_rows_say(page: Path) -> None:
    found = problems_of(MODULES[page], page.read_text())
    assert found == [], "tests/figures/__init__.py says what to do"


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


@functools.cache
def measured() -> frozenset[tuple[str, str]]:
    """(file, commit) of all rows."""
    return frozenset((row["file"], row["commit"][:7]) for row in all_rows())


def table_without_rows(text: str) -> tuple[int, list[str]]:
    """The lines of a table of figures, and what it says of rows that there are not.

    A line names a file, by link or as its heading does, and commits; "log", "printed" and names of
    tests say that there are no rows.
    """
    link = r"\[(\w+(?: \w+)*)\]\((?:\.\./)?results/([\w-]+\.jsonl)\)"
    files, heading, wrong = dict(re.findall(link, text.partition("\n| what")[0])), [], []
    table = [line for line in text.split("\n\n## ")[0].splitlines() if line.startswith("|")]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    for what, figure, origin in lines:
        named = [file for _, file in re.findall(link, origin)]
        files |= dict(re.findall(link, origin))
        text = re.sub(link, "", origin)
        # "26 of H100s" is such a name, and so is "26".
        for name in sorted(files, key=len, reverse=True):
            if re.search(rf"\b{name}\b", text):
                named.append(files[name])
                text = re.sub(rf"\b{name}\b", "", text)
        if not figure:
            heading = named
        if re.search(r"\b(?:log|printed|no rows)\b|\.py|^\s*$", origin):
            continue
        for commit in re.findall(r"\b[0-9a-f]{7}\b", origin):
            if not any((file, commit) in measured() for file in [*named, *heading]):
                wrong.append(f"{what}: no rows of {commit} in {named} {heading}")
    return len(lines), wrong


def test_commits_of_notes_have_rows_in_the_files_that_are_named() -> None:
    text = (ROOT / "benchmarks" / "NOTES.md").read_text().split("## The state now")[1]
    lines, wrong = table_without_rows(text)
    assert wrong == []
    assert 30 < lines < 60, "a page: older figures go to the log"


def test_figures_that_left_the_notes_still_have_their_rows() -> None:
    days = [page.read_text() for page in sorted((ROOT / "benchmarks" / "log").glob("2026-*.md"))]
    tables = [day.split("## Figures that left the notes")[1] for day in days if "## Figures" in day]
    counted = [table_without_rows(table) for table in tables]
    assert [wrong for _, wrong in counted if wrong] == []
    assert sum(lines for lines, _ in counted) > 50


@pytest.mark.parametrize("page", MODULES, ids=lambda page: str(page.relative_to(ROOT)))
def test_false_figures_are_found_on_every_page(page: Path) -> None:
    """Numbers without a unit are found if the page has no such number as a setting."""
    text = page.read_text()
    end = text.rindex(".\n", 0, text.find("<!-- sources") if "<!-- sources" in text else None) + 1
    planted = {
        "It takes 7.31 s.": "7.31", "It took 18 seconds.": "18", "That is 47%.": "47",
        "Of these it reached 4,711.": "4,711", "It is twice as fast.": "twice",
        "It needs half the time.": "half", "It was 3x faster.": "3x", "An env takes 119 KB.": "119",
        "It took forty seconds.": "forty seconds", "It is a few times as fast.": "a few times",
        "It takes 20-30 minutes.": "20-30 minutes", "It saves a third of it.": "a third",
    }  # fmt: skip
    found = problems_of(MODULES[page], f"{text[:end]} {' '.join(planted)}{text[end:]}")
    missed = {words for words in planted.values()
              if not any(one.startswith(f"no rows for {words} in") for one in found)}  # fmt: skip
    assert missed == set()


# Pages of which figures are not looked at, and why.
NOT_SCANNED = {
    "benchmarks/NOTES.md": "a notebook: each line names its rows, which the test below looks for",
    **dict.fromkeys(
        (str(page.relative_to(ROOT)) for page in ROOT.glob("benchmarks/log/*.md")),
        "a diary: what was measured that day",
    ),
    "benchmarks/results/README.md": "names the keys of rows; a test above has its figures",
    "CHANGELOG.md": "what changed in each version",
    "CONTRIBUTING.md": "for developers: times of tests, which are not rows",
    "design/planted_faults.md": "for developers: which faults which tests have found",
}


def test_every_page_is_scanned_or_named() -> None:
    found = {
        path
        for pattern in (
            "*.md",
            "docs/*.md",
            "examples/*/README.md",
            "benchmarks/**/*.md",
            "design/*.md",
        )
        for path in ROOT.glob(pattern)
    }
    assert found == {*MODULES, *(ROOT / name for name in NOT_SCANNED)}
