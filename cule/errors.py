"""Errors for wrong arguments, which are both Python's and gymnasium's.

The message says what was expected and what came.
"""

from __future__ import annotations

from gymnasium.error import Error


class InvalidValue(ValueError, Error):
    """An argument has a wrong value."""


class InvalidType(TypeError, Error):
    """An argument has a wrong type, or there is no such argument."""
