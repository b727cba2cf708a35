"""The plans that docs/training.md prints are those that its commands print."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from examples.reinforce import reinforce

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def test_plans_in_the_docs_are_those_that_are_made(monkeypatch, capsys):
    text = PAGE.read_text()
    pairs = re.findall(
        r"```sh\n(python -m [^\n]*--explain)\n```\n\n```text\n(.*?)```", text, re.DOTALL
    )
    assert len(pairs) == 2
    for command, printed in pairs:
        monkeypatch.setattr(sys, "argv", command.split()[2:])
        assert reinforce.main() == 0
        told = capsys.readouterr().out.partition("\nPlanned in ")[0]
        assert told.strip() == printed.strip()
