"""What wrong arguments raise: Python's own exceptions, which are gymnasium's as well.

The message says what was expected and what came.
"""

from __future__ import annotations

from gymnasium.error import Error


class InvalidValue(ValueError, Error):
    """An argument has a value that it cannot have."""


class InvalidType(TypeError, Error):
    """An argument is of a type that it cannot have, or there is no such argument."""
