"""A pytest plugin for every suite: leaves out tests that do not apply, and records the others'
outcomes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from peers_names import matches

CONFIG = json.loads(os.environ["CULE_PEERS"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Leaves out the tests that do not apply."""
    kept, left = [], []
    for item in items:
        (left if any(matches(item.nodeid, one) for one in CONFIG["left_out"]) else kept).append(
            item
        )
    items[:] = kept
    if left:
        config.hook.pytest_deselected(items=left)
        _write({"left_out": [item.nodeid for item in left]})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes a line for each test, and for each set-up or tear-down that fails."""
    if report.when == "call" or report.outcome != "passed":
        text = report.longreprtext.strip().splitlines()
        _write(
            {
                "test": report.nodeid,
                "outcome": report.outcome,
                "last_line": text[-1] if text else "",
            }
        )


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Writes a line for a file that cannot be imported, as its suite has not passed."""
    if report.failed:
        _write({"broken": report.nodeid, "text": report.longreprtext[-2000:]})


def _write(row: dict[str, Any]) -> None:
    with Path(CONFIG["results"]).open("a") as file:
        file.write(json.dumps(row) + "\n")
