"""Names what runs, for cule.scope, where that is installed. Nothing else imports cule.scope."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

_scope: Any
try:
    from cule import scope as _scope  # type: ignore[attr-defined, no-redef, unused-ignore]
except ImportError:
    _scope = None

NOTHING: AbstractContextManager[Any] = nullcontext()


def operation(name: str) -> AbstractContextManager[Any]:
    """Names an operation while a `with` block runs."""
    return NOTHING if _scope is None else _scope.operation(name)


def phase(name: str) -> AbstractContextManager[Any]:
    """Names a phase while a `with` block runs."""
    return NOTHING if _scope is None else _scope.phase(name)
