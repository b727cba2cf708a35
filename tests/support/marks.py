"""Which of a test's cases `make test` has, where one case shows most of what all of them show."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """The cases for pytest.mark.parametrize; those that are not chosen are marked slow.

    A case of several values is a tuple.
    """
    cases = list(cases)
    assert chosen and all(case in cases for case in chosen)
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in chosen else pytest.mark.slow,
        )
        for case in cases
    ]
