"""Writes the tables in pages that are made of rows: python -m tests.figures."""

from __future__ import annotations

from tests.figures import modules, rewritten

for module in modules():
    module.PAGE.write_text(rewritten(module))
