"""Writes the pages' tables of sources: python -m tests.figures."""

from __future__ import annotations

from tests.figures import modules
from tests.figures.pages import with_sources

for module in modules():
    module.PAGE.write_text(with_sources(module.PAGE, module.SOURCES))
