"""Ids of tests."""

from __future__ import annotations

import re


def matches(test: str, named: str) -> bool:
    """Whether `named` is the id of this test, or that of its function, class or file; * is any
    text."""
    pattern = ".*".join(map(re.escape, named.split("*")))
    return re.fullmatch(rf"{pattern}((\[|::).*)?", test, re.DOTALL) is not None
