"""Keywords of AtariEnv that an adapter sets itself, and refuses."""

from __future__ import annotations

from typing import Any


def refuse(adapter: str, options: dict[str, Any], reserved: dict[str, str]) -> None:
    """Checks that none of the `reserved` keywords, each with the reason, is among the `options`.

    Raises:
        TypeError: one is.
    """
    for name, reason in reserved.items():
        if name in options:
            raise TypeError(f"expected no {name} for {adapter}, as {reason}, got {options[name]!r}")
